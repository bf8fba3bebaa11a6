import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { number, time } from "../format.js";
import { t } from "../i18n.js";
import { me } from "../me.js";
import { go, link } from "../router.js";
import { pagedTable } from "../table.js";
import { badge, begin, button, card } from "./head.js";
import { topicForm } from "./topic_forms.js";

export function kindName(kind) {
  return {
    normal: t("kind.normal"), retry: t("kind.retry"), "dead letters": t("kind.dlq"),
    system: t("kind.system"),
  }[kind];
}

function messages(row) {
  return row.error ? badge("bad", t("topics.notKnown")) : number(row.messages);
}

export function topicsPage(view, params, signal) {
  const actions = me.mayChange("operator") && button(t("topics.create"), () => topicForm(
    null, (told) => go("/topic", { name: told.topic })), "primary");
  const body = begin(view, t("nav.topics"), { actions });
  const { element } = pagedTable({
    caption: t("nav.topics"), params, signal, emptyText: t("topics.none"),
    kinds: [["normal", t("kind.normal")], ["retry", t("kind.retry")],
      ["dead letters", t("kind.dlq")], ["system", t("kind.system")],
      ["normal,retry,dead letters,system", t("kind.all")]],
    ask: (state) => get("/api/topics", state, signal),
    columns: [
      { title: t("topics.topic"), head: true,
        show: (row) => h("a", { href: link("/topic", { name: row.name }) }, row.name) },
      { title: t("topics.kind"), show: (row) => kindName(row.kind) },
      { title: t("topics.brokers"), numeric: true, show: (row) => number(row.brokers) },
      { title: t("topics.queues"), numeric: true,
        show: (row) => `${number(row.readQueues)} / ${number(row.writeQueues)}` },
      { title: t("topics.perm"), show: (row) => h("code", {}, row.perm || "–") },
      { title: t("topics.messages"), numeric: true, show: messages },
      { title: t("topics.updated"), show: (row) => time(row.updatedMs) },
    ],
  });
  replace(body, card("", element));
}
