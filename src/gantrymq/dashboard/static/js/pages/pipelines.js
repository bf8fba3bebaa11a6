import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { duration, number, time } from "../format.js";
import { t } from "../i18n.js";
import { link } from "../router.js";
import { empty, load, problems } from "../states.js";
import { pairs, table } from "../table.js";
import { badge, begin, card } from "./head.js";

function runBadge(row) {
  if (row.state === "failed" || !row.isGood) return badge("bad", t("run.problems"));
  return badge(row.state === "planned" ? "" : "good", row.state);
}

function runs(told) {
  if (told.rows === null) return empty(t("pipelines.noFolder"));
  if (!told.rows.length) return [problems(told), empty(t("pipelines.noRuns"))];
  return [problems(told), table([
    { title: t("pipelines.job"), head: true,
      show: (row) => h("a", { href: link("/run", { file: row.file }) }, row.job) },
    { title: t("pipelines.state"), show: runBadge },
    { title: t("pipelines.started"), show: (row) => time(row.startedMs) },
    { title: t("pipelines.took"), numeric: true, show: (row) => duration(row.seconds * 1000) },
    { title: t("pipelines.problems"), numeric: true, show: (row) => number(row.problems) },
    { title: t("pipelines.failedChecks"), numeric: true, show: (row) => number(row.failedChecks) },
    { title: t("pipelines.file"), show: (row) => h("code", {}, row.file) },
  ], told.rows, t("pipelines.runs"))];
}

function jobs(told) {
  return table([
    { title: t("pipelines.job"), show: (row) => row.name, head: true },
    { title: t("pipelines.about"), show: (row) => row.about },
    { title: t("pipelines.command"), show: (row) => h("code", {},
      `gantrymq pipeline run ${row.name} --help`) },
  ], told.rows, t("pipelines.jobs"));
}

export function pipelinesPage(view, _params, signal) {
  const last = h("div", {});
  const list = h("div", {});
  const body = begin(view, t("nav.pipelines"), { about: t("pipelines.intro") });
  replace(body, card(t("pipelines.runs"), last), card(t("pipelines.jobs"), list));
  load(last, () => get("/api/pipelines/runs", {}, signal), runs, signal);
  load(list, () => get("/api/pipelines", {}, signal), jobs, signal);
}

function anyTable(name, rows, leftOut) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return card(name, rows.length ? table(names.map((each, at) => ({
    title: each, head: at === 0, show: (row) => String(row[each] ?? "–"),
  })), rows, name) : empty(t("pipelines.noRows")),
  leftOut && h("p", { class: "about" }, t("state.more", { count: leftOut })));
}

function report(told) {
  return [
    card("", pairs([[t("pipelines.state"), runBadge(told)],
      [t("pipelines.started"), time(told.startedMs)],
      [t("pipelines.took"), duration(told.seconds * 1000)],
      ...Object.entries(told.figures).map(([name, value]) => [name, String(value ?? "–")])])),
    told.told.length > 0 && card(t("pipelines.problems"),
      h("ul", {}, told.told.map((each) => h("li", {}, each)))),
    told.checks.length > 0 && card(t("pipelines.checks"), table([
      { title: t("pipelines.check"), show: (row) => row.name, head: true },
      { title: t("pipelines.state"), show: (row) => (row.passed ? badge("good", t("yes"))
        : badge("bad", t("no"))) },
      { title: t("pipelines.said"), show: (row) => row.said },
    ], told.checks, t("pipelines.checks"))),
    told.plan.length > 0 && card(t("pipelines.plan"),
      h("ul", {}, told.plan.map((each) => h("li", {}, each)))),
    Object.entries(told.tables).map(([name, rows]) => anyTable(name, rows, told.rowsLeftOut[name])),
    card(t("pipelines.options"), pairs(Object.entries(told.options)))];
}

export function runPage(view, params, signal) {
  const place = h("div", {});
  const body = begin(view, params.file || "", { back: ["/pipelines", t("nav.pipelines")] });
  replace(body, place);
  load(place, () => get("/api/pipelines/run", { file: params.file }, signal), report, signal);
}
