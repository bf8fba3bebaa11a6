import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { number, time } from "../format.js";
import { t } from "../i18n.js";
import { me } from "../me.js";
import { go, link } from "../router.js";
import { empty, failure, load, problems } from "../states.js";
import { pairs, table } from "../table.js";
import { badge, begin, button, card, queueText } from "./head.js";
import { producerTable } from "./producers.js";
import { resetForm } from "./reset.js";
import { deleteTopic, sendForm, topicForm } from "./topic_forms.js";
import { kindName } from "./topics.js";

function detail(told) {
  const messages = told.queues.reduce((sum, each) => sum + each.next - each.first, 0);
  return [problems(told),
    card("", pairs([[t("topics.kind"), kindName(told.kind)], [t("topics.type"), told.type || "–"],
      [t("topics.queues"), `${number(told.readQueues)} / ${number(told.writeQueues)}`],
      [t("topics.perm"), told.perm], [t("topics.order"), told.order ? t("yes") : t("no")],
      [t("topics.messages"), number(messages)]])),
    card(t("topics.route"), table([
      { title: t("brokers.broker"), show: (row) => row.broker, head: true },
      { title: t("brokers.cluster"), show: (row) => row.cluster },
      { title: t("brokers.address"), show: (row) => row.addresses.map((each) => (
        h("div", {}, h("code", { class: "place" }, each)))) },
      { title: t("topics.readQueues"), numeric: true, show: (row) => number(row.readQueues) },
      { title: t("topics.writeQueues"), numeric: true, show: (row) => number(row.writeQueues) },
      { title: t("topics.perm"), show: (row) => h("code", {}, row.perm) },
    ], told.places, t("topics.route"))),
    card(t("topics.status"), told.queues.length ? table([
      { title: t("topics.queue"), show: (row) => queueText(`${row.broker}:${row.id}`), head: true },
      { title: t("topics.first"), numeric: true, show: (row) => number(row.first) },
      { title: t("topics.next"), numeric: true, show: (row) => number(row.next) },
      { title: t("topics.messages"), numeric: true, show: (row) => number(row.next - row.first) },
      { title: t("topics.updated"), show: (row) => time(row.updatedMs) },
    ], told.queues, t("topics.status")) : empty(t("topics.noQueues")))];
}

function readers(told, name, signal) {
  if (!told.rows.length) return [problems(told), empty(t("topics.noReaders"))];
  const columns = [
    { title: t("groups.group"), head: true,
      show: (row) => h("a", { href: link("/group", { name: row.group }) }, row.group) },
    { title: t("groups.behind"), numeric: true,
      show: (row) => (row.error ? badge("bad", row.error) : number(row.behind)) },
  ];
  if (me.mayChange("operator")) {
    columns.push({ title: t("table.actions"), show: (row) => button(t("groups.reset"),
      () => resetForm(row.group, [name], () => {}, signal), "small") });
  }
  return [problems(told), table(columns, told.rows, t("topics.readers"))];
}

function actions(name, place, again) {
  const made = [h("a", { class: "button", href: link("/messages", { topic: name }) },
    t("topics.messagesOf"))];
  if (me.mayChange("operator")) {
    made.push(button(t("topics.send"), () => sendForm(name)));
    made.push(button(t("topics.edit"), async () => {
      try {
        topicForm(await get("/api/topic", { name }), again);
      } catch (error) {
        replace(place, failure(error));
      }
    }));
  }
  if (me.mayChange("admin")) {
    made.push(button(t("action.delete"), async () => {
      try {
        await deleteTopic(name, () => go("/topics"));
      } catch (error) {
        replace(place, failure(error));
      }
    }, "danger"));
  }
  return made;
}

export function topicPage(view, params, signal) {
  const { name = "" } = params;
  const said = h("div", {});
  const place = h("div", {});
  const groups = h("div", {});
  const producers = h("div", {});
  const ask = () => load(place, () => get("/api/topic", { name }, signal), detail, signal);
  const body = begin(view, name, {
    back: ["/topics", t("nav.topics")], actions: actions(name, said, ask),
  });
  replace(body, said, place, card(t("topics.readers"), groups),
    card(t("topics.producers"), h("p", { class: "about" }, t("topics.producersAbout")), producers));
  ask();
  load(groups, () => get("/api/topic/readers", { name }, signal),
    (told) => readers(told, name, signal), signal);
  load(producers, () => get("/api/producers", { name }, signal), producerTable, signal);
}
