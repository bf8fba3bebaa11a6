import { get, post } from "../api.js";
import { formDialog } from "../dialog.js";
import { h, replace } from "../dom.js";
import { number, percent, short } from "../format.js";
import { t } from "../i18n.js";
import { me } from "../me.js";
import { link } from "../router.js";
import { empty, load, notice, problems } from "../states.js";
import { pairs, table } from "../table.js";
import { badge, begin, button, card } from "./head.js";

function role(row) {
  if (row.error) return badge("bad", t("brokers.silent"));
  return row.id === 0 ? badge("good", t("brokers.master")) : badge("", t("brokers.slave"));
}

function inOut(first, second) {
  return `${number(first)} / ${number(second)}`;
}

function list(told) {
  if (!told.rows.length) return [problems(told), empty(t("brokers.none"))];
  return [problems(told), table([
    { title: t("brokers.broker"), head: true,
      show: (row) => h("a", { href: link("/broker", { address: row.address }) },
        `${row.name}:${row.id}`) },
    { title: t("brokers.role"), show: role },
    { title: t("brokers.cluster"), show: (row) => row.cluster },
    { title: t("brokers.address"), show: (row) => h("code", { class: "place" }, row.address) },
    { title: t("brokers.version"), show: (row) => row.version || "–" },
    { title: t("brokers.rates"), numeric: true,
      show: (row) => `${short(row.inPerS)} / ${short(row.outPerS)}` },
    { title: t("brokers.today"), numeric: true, show: (row) => inOut(row.inToday, row.outToday) },
    { title: t("brokers.yesterday"), numeric: true,
      show: (row) => inOut(row.inYesterday, row.outYesterday) },
    { title: t("brokers.disk"), numeric: true, show: (row) => percent(row.diskRatio) },
  ], told.rows, t("nav.brokers")),
  h("p", { class: "about" }, t("brokers.nameServers"), " ",
    told.nameServers.map((each) => [h("code", {}, each), " "]))];
}

export function brokersPage(view, _params, signal) {
  const place = h("div", {});
  const ask = () => load(place, () => get("/api/brokers", {}, signal), list, signal);
  const body = begin(view, t("nav.brokers"), {
    actions: [button(t("action.refresh"), ask)],
  });
  replace(body, card("", place));
  ask();
}

function writable(name, allowed, done) {
  formDialog({
    title: allowed ? t("brokers.allowWrites") : t("brokers.stopWrites"),
    intro: h("p", {}, allowed ? t("brokers.allowAbout") : t("brokers.stopAbout")),
    fields: [], action: allowed ? t("brokers.allowWrites") : t("brokers.stopWrites"),
    danger: !allowed,
    submit: async (_values, box) => {
      const told = await post("/api/broker/writable", { broker: name, allowed });
      box.close();
      done(told);
    },
  });
}

function replication(told) {
  if (!told.replication) return null;
  const { slaves, isMaster, inSync } = told.replication;
  const rows = [[t("brokers.role"), isMaster ? t("brokers.master") : t("brokers.slave")],
    [t("brokers.inSync"), number(inSync)]];
  return card(t("brokers.replication"), pairs(rows), slaves.length > 0 && table([
    { title: t("brokers.address"), show: (row) => h("code", {}, row.address), head: true },
    { title: t("brokers.ack"), numeric: true, show: (row) => number(row.ack) },
    { title: t("brokers.behindBytes"), numeric: true, show: (row) => number(row.behind) },
    { title: t("brokers.inSync"), show: (row) => (row.inSync ? t("yes") : t("no")) },
  ], slaves, t("brokers.replication")));
}

function detail(told) {
  const rows = Object.entries(told.figures).map(([name, value]) => ({ name, value }));
  return [problems(told),
    card("", pairs([[t("brokers.version"), told.version], [t("brokers.runtime"), told.runtime],
      [t("brokers.disk"), percent(told.diskRatio)],
      [t("brokers.rates"), `${short(told.inPerS)} / ${short(told.outPerS)}`]])),
    replication(told),
    card(t("brokers.figures"), table([
      { title: t("brokers.figure"), show: (row) => row.name, head: true },
      { title: t("brokers.value"), show: (row) => h("code", {}, row.value.trim() || "–") },
    ], rows, t("brokers.figures")))];
}

export function brokerPage(view, params, signal) {
  const said = h("div", {});
  const place = h("div", {});
  const actions = [button(t("action.refresh"), () => ask())];
  const body = begin(view, params.address || "", {
    back: ["/brokers", t("nav.brokers")], actions,
  });
  const done = (told) => replace(said, problems(told) || notice("good", t("brokers.changed")));
  const ask = () => load(place,
    () => get("/api/broker", { address: params.address }, signal), detail, signal);
  replace(body, said, place);
  ask();
  if (!me.mayChange("admin")) return;
  get("/api/brokers", {}, signal).then((told) => {
    const own = told.rows.find((row) => row.address === params.address && row.id === 0);
    if (!own || signal.aborted) return;
    view.querySelector(".actions").append(
      button(t("brokers.stopWrites"), () => writable(own.name, false, done)),
      button(t("brokers.allowWrites"), () => writable(own.name, true, done)));
  }, () => {});
}
