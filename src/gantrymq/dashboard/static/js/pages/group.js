import { get } from "../api.js";
import { openDialog } from "../dialog.js";
import { h, replace } from "../dom.js";
import { duration, number, short, time } from "../format.js";
import { t } from "../i18n.js";
import { me } from "../me.js";
import { go, link } from "../router.js";
import { empty, failure, load, problems } from "../states.js";
import { pairs, table } from "../table.js";
import { deleteGroup, groupForm } from "./group_forms.js";
import { begin, button, card, queueText } from "./head.js";
import { resetForm, undoDialog } from "./reset.js";

function settings(told) {
  if (!told.settings.length) return empty(t("groups.noSettings"));
  return table([
    { title: t("brokers.broker"), show: (row) => row.broker, head: true },
    { title: t("groups.enabled"), show: (row) => (row.enabled ? t("yes") : t("no")) },
    { title: t("groups.orderly"), show: (row) => (row.orderly ? t("yes") : t("no")) },
    { title: t("groups.broadcast"), show: (row) => (row.broadcast ? t("yes") : t("no")) },
    { title: t("groups.retries"), numeric: true, show: (row) => number(row.retries) },
    { title: t("groups.retryQueues"), numeric: true, show: (row) => number(row.retryQueues) },
    { title: t("groups.timeout"), numeric: true, show: (row) => number(row.timeoutMin) },
  ], told.settings, t("groups.settings"));
}

function progress(told, owners) {
  if (told.neverOnline) return empty(t("groups.neverOnlineAbout"));
  if (!told.queues.length) return empty(t("groups.noQueues"));
  const oldest = Math.max(0, ...told.queues.map((each) => each.waitingMs || 0));
  return [
    pairs([[t("groups.behind"), number(told.behind)],
      [t("groups.waiting"), oldest ? duration(oldest) : "–"],
      [t("groups.rate"), `${short(told.tps)} ${t("unit.perSecond")}`]]),
    table([
      { title: t("topics.topic"), head: true,
        show: (row) => h("a", { href: link("/topic", { name: row.topic }) }, row.topic) },
      { title: t("topics.queue"), show: (row) => queueText(`${row.broker}:${row.id}`) },
      { title: t("groups.end"), numeric: true, show: (row) => number(row.end) },
      { title: t("groups.at"), numeric: true, show: (row) => number(row.at) },
      { title: t("groups.behind"), numeric: true, show: (row) => number(row.behind) },
      { title: t("groups.waiting"), numeric: true, show: (row) => (
        row.waitingMs === null ? "–" : duration(row.waitingMs)) },
      { title: t("groups.taken"), show: (row) => time(row.takenMs) },
      { title: t("groups.reader"), show: (row) => (
        owners[`${row.topic}@${row.broker}:${row.id}`] || "–") },
    ], told.queues, t("groups.progress"))];
}

function mismatch(told) {
  if (!told.mismatch.length) return null;
  return h("div", { class: "notice wrong", role: "alert" },
    h("strong", {}, t("groups.mismatchAbout")),
    h("ul", {}, told.mismatch.map((party) => h("li", {},
      `${party.clients.join(", ")}: ${party.takes.join("; ")}`))));
}

function members(told, name) {
  if (!told.online) return empty(t("groups.nobody"));
  return [mismatch(told), problems(told),
    pairs([[t("groups.type"), told.type], [t("groups.model"), told.model],
      [t("groups.from"), told.from]]),
    table([
      { title: t("producers.client"), show: (row) => row.client, head: true },
      { title: t("brokers.address"), show: (row) => row.address },
      { title: t("producers.language"), show: (row) => row.language },
      { title: t("groups.queues"), numeric: true, show: (row) => number(row.queues) },
      { title: t("groups.takes"), show: (row) => row.takes.map((each) => h("div", {}, each)) },
      { title: t("table.actions"), show: (row) => [
        button(t("groups.running"), () => running(name, row.client, false), "small"), " ",
        button(t("groups.stack"), () => running(name, row.client, true), "small")] },
    ], told.members, t("groups.members"))];
}

function running(name, client, stack) {
  const place = h("div", {});
  openDialog(client, place, { wide: true });
  load(place, () => get("/api/group/running", { name, client, stack }), (told) => [
    stack && card(t("groups.stack"), told.stack ? h("pre", { tabindex: "0" }, told.stack)
      : empty(t("groups.noStack"))),
    !stack && told.status.length > 0 && table([
      { title: t("topics.topic"), show: (row) => row.topic, head: true },
      { title: t("groups.pullRate"), numeric: true, show: (row) => short(row.pullTps) },
      { title: t("groups.okRate"), numeric: true, show: (row) => short(row.okTps) },
      { title: t("groups.failedRate"), numeric: true, show: (row) => short(row.failedTps) },
      { title: t("groups.consumeMs"), numeric: true, show: (row) => short(row.consumeMs) },
    ], told.status, t("groups.running")),
    !stack && told.queues.length > 0 && table([
      { title: t("topics.queue"), show: (row) => row.queue, head: true },
      { title: t("groups.at"), numeric: true, show: (row) => number(row.commit) },
      { title: t("groups.cached"), numeric: true, show: (row) => number(row.cached) },
      { title: t("groups.pulled"), show: (row) => time(row.pulledMs) },
      { title: t("groups.consumed"), show: (row) => time(row.consumedMs) },
    ], told.queues, t("groups.running")),
    !stack && pairs(Object.entries(told.properties)),
  ]);
}

function actions(name, state, place, again) {
  const topics = () => [...new Set(state.told.queues.map((each) => each.topic))]
    .filter((topic) => !topic.startsWith("%RETRY%"));
  const made = [h("a", { class: "button", href: link("/dlq", { group: name }) }, t("nav.dlq"))];
  if (me.mayChange("operator")) {
    made.push(button(t("groups.reset"), () => {
      if (state.told && topics().length) resetForm(name, topics(), again);
      else replace(place, failure({ message: t("reset.noTopics") }));
    }));
    made.push(button(t("undo.open"), () => undoDialog(name, again)));
    made.push(button(t("groups.edit"), () => state.told && groupForm(state.told, again)));
  }
  if (me.mayChange("admin")) {
    made.push(button(t("action.delete"), async () => {
      try {
        await deleteGroup(name, () => go("/groups"));
      } catch (error) {
        replace(place, failure(error));
      }
    }, "danger"));
  }
  return made;
}

export function groupPage(view, params, signal) {
  const { name = "" } = params;
  const state = { told: null, owners: {} };
  const said = h("div", {});
  const far = h("div", {});
  const who = h("div", {});
  const set = h("div", {});
  const ask = () => load(far, () => get("/api/group", { name }, signal), (told) => {
    state.told = told;
    replace(set, settings(told));
    return [problems(told), progress(told, state.owners)];
  }, signal);
  const body = begin(view, name, {
    back: ["/groups", t("nav.groups")],
    actions: [button(t("action.refresh"), () => ask()), actions(name, state, said, ask)],
  });
  replace(body, said, card(t("groups.progress"), far), card(t("groups.members"), who),
    card(t("groups.settings"), set));
  ask();
  load(who, () => get("/api/group/members", { name }, signal), (told) => {
    state.owners = told.owners;
    if (state.told) replace(far, problems(state.told), progress(state.told, state.owners));
    return members(told, name);
  }, signal);
}
