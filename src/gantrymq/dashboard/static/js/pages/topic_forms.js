// Making, changing and deleting topics, and sending to them.

import { del, get, post } from "../api.js";
import { formDialog, planDialog } from "../dialog.js";
import { h, replace } from "../dom.js";
import { t } from "../i18n.js";
import { link } from "../router.js";
import { notice, problems } from "../states.js";

const TYPES = ["", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"];

export function topicForm(topic, done) {
  formDialog({
    title: topic ? t("topics.edit") : t("topics.create"), action: t("action.save"),
    fields: [
      { name: "topic", label: t("topics.topic"), value: topic ? topic.name : "", required: true,
        readonly: Boolean(topic), hint: topic ? null : t("topics.nameHint"), maxlength: 127 },
      { name: "readQueues", label: t("topics.readQueues"), type: "number", min: 0, max: 65536,
        value: topic ? topic.places[0].readQueues : 8, required: true },
      { name: "writeQueues", label: t("topics.writeQueues"), type: "number", min: 0, max: 65536,
        value: topic ? topic.places[0].writeQueues : 8, required: true },
      { name: "perm", label: t("topics.perm"), type: "select",
        value: topic ? topic.places[0].perm : "RW-",
        options: [["RW-", t("perm.rw")], ["R--", t("perm.r")], ["-W-", t("perm.w")],
          ["---", t("perm.none")]] },
      { name: "type", label: t("topics.type"), type: "select", value: topic ? topic.type : "",
        options: TYPES.map((each) => [each, each || t("topics.noType")]), hint: t("topics.typeHint") },
      { name: "brokers", label: t("topics.onBrokers"), value: topic ? topic.places.map((each) => each.broker).join(", ") : "",
        hint: t("topics.onBrokersHint") },
      { name: "order", label: t("topics.order"), type: "checkbox", value: topic && topic.order },
    ],
    submit: async (values, box) => {
      const told = await post("/api/topic", values);
      if (told.problemCount) {
        replace(box.querySelector(".dialog-body"), problems(told));
        return;
      }
      box.close();
      done(told);
    },
  });
}

export async function deleteTopic(name, done) {
  const plan = await get("/api/topic/deletion", { name });
  planDialog({
    title: t("topics.deleteTitle", { name }), plan, action: t("action.delete"),
    submit: async (_values, box) => {
      await del("/api/topic", { topic: name });
      box.close();
      done();
    },
  });
}

// Lines of NAME=VALUE.
function properties(text) {
  const pairs = text.split("\n").map((line) => line.trim()).filter(Boolean)
    .map((line) => [line.split("=")[0].trim(), line.split("=").slice(1).join("=").trim()]);
  return Object.fromEntries(pairs);
}

export function sendForm(topic) {
  formDialog({
    title: t("topics.sendTitle", { name: topic }), action: t("action.send"),
    fields: [
      { name: "tag", label: t("messages.tag") },
      { name: "keys", label: t("messages.keys"), hint: t("messages.keysHint") },
      { name: "body", label: t("messages.body"), type: "textarea", span: "whole" },
      { name: "properties", label: t("messages.properties"), type: "textarea", rows: 2,
        span: "whole", hint: t("messages.propertiesHint") },
      { name: "delayLevel", label: t("topics.delayLevel"), type: "number", value: 0, min: 0 },
      { name: "trace", label: t("topics.trace"), type: "checkbox" },
    ],
    submit: async (values, box) => {
      const told = await post("/api/topic/send", {
        ...values, topic, properties: properties(values.properties || ""),
      });
      replace(box.querySelector(".dialog-body"), notice("good",
        h("p", {}, t("topics.sent", { status: told.status })),
        h("p", {}, h("a", {
          href: link("/message", { id: told.id, topic }), onclick: () => box.close(),
        }, told.id)),
        h("p", { class: "about" }, `${told.broker}:${told.queue} @ ${told.offset}`)));
    },
  });
}
