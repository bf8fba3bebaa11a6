import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { number } from "../format.js";
import { t } from "../i18n.js";
import { plot } from "../plot.js";
import { link } from "../router.js";
import { empty, failure, load } from "../states.js";
import { table } from "../table.js";
import { badge, begin, card } from "./head.js";

const SPAN_MS = 10 * 60 * 1000;
const EVERY_MS = 2000;

function figure(value, name, path) {
  return h("a", { class: "figure card", href: link(path) },
    h("strong", {}, number(value)), h("span", {}, name));
}

function figures(told) {
  return h("div", { class: "figures" },
    figure(told.brokers, t("overview.brokers"), "/brokers"),
    figure(told.topics, t("overview.topics"), "/topics"),
    figure(told.groups, t("overview.groups"), "/groups"),
    figure(told.deadLetterTopics, t("overview.dlq"), "/dlq"));
}

// Adds up what the brokers of a moment said; null where none of them said anything.
function together(sample) {
  const said = Object.values(sample.brokers);
  const sum = (key) => {
    const known = said.map((each) => each[key]).filter((each) => each !== null);
    return known.length ? known.reduce((one, other) => one + other, 0) : null;
  };
  const most = (key) => {
    const known = said.map((each) => each[key]).filter((each) => each !== null);
    return known.length ? Math.max(...known) : null;
  };
  return {
    timeMs: sample.timeMs, in: sum("in"), out: sum("out"), p99: most("p99"), p999: most("p999"),
    answer: most("answer"),
  };
}

function watch(places, signal) {
  let samples = [];
  let after = 0;
  async function step() {
    if (signal.aborted) return;
    try {
      const told = await get("/api/samples", { after }, signal);
      samples = [...samples, ...told.samples].filter((each) => each.timeMs > told.nowMs - SPAN_MS);
      after = samples.length ? samples.at(-1).timeMs : 0;
      const points = samples.map(together);
      places.rate.update(points, SPAN_MS, told.nowMs);
      places.latency.update(points, SPAN_MS, told.nowMs);
      const silent = Object.entries(samples.length ? samples.at(-1).problems : {});
      replace(places.silent, silent.length > 0 && h("div", { class: "notice partial", role: "alert" },
        h("strong", {}, t("overview.silent")),
        h("ul", {}, silent.map(([name, why]) => h("li", {}, `${name}: ${why}`)))));
    } catch (error) {
      if (error.name === "AbortError") return;
      replace(places.silent, failure(error));
    }
    if (!signal.aborted) window.setTimeout(step, EVERY_MS);
  }
  step();
}

function findings(told) {
  const wrong = told.findings.filter((each) => each.verdict !== "ok");
  const kinds = { warning: "warn", wrong: "bad" };
  const words = { warning: t("finding.warning"), wrong: t("finding.wrong") };
  if (!wrong.length) return empty(t("overview.allWell", { count: told.findings.length }));
  return table([
    { title: t("finding.verdict"), show: (row) => badge(kinds[row.verdict], words[row.verdict]) },
    { title: t("finding.what"), show: (row) => row.what, head: true },
    { title: t("finding.told"), show: (row) => row.told },
    { title: t("finding.advice"), show: (row) => row.advice },
  ], wrong, t("overview.findings"));
}

export function overviewPage(view, _params, signal) {
  const body = begin(view, t("nav.overview"), { about: t("overview.about") });
  const counts = h("div", {});
  const silent = h("div", {});
  const check = h("div", {});
  const rate = plot({
    title: t("overview.rate"), unit: t("unit.perSecond"),
    series: [{ key: "in", name: t("overview.in"), color: "one" },
      { key: "out", name: t("overview.out"), color: "two" }],
  });
  const latency = plot({
    title: t("overview.latency"), unit: "ms",
    series: [{ key: "p99", name: t("overview.p99"), color: "one" },
      { key: "p999", name: t("overview.p999"), color: "two" },
      { key: "answer", name: t("overview.answer"), color: "three" }],
  });
  replace(body, counts, silent, h("div", { class: "plots" }, rate.element, latency.element),
    card(t("overview.findings"), check));
  load(counts, () => get("/api/summary", {}, signal), figures, signal);
  load(check, () => get("/api/findings", {}, signal), findings, signal);
  watch({ rate, latency, silent }, signal);
}
