import { get } from "../api.js";
import { append, h, replace } from "../dom.js";
import { field, values } from "../form.js";
import { bytes, localInput, number, time } from "../format.js";
import { t } from "../i18n.js";
import { go, link, note } from "../router.js";
import { empty, failure, loading, problems } from "../states.js";
import { table } from "../table.js";
import { begin, button, card, queueText } from "./head.js";

export function messageColumns(more = []) {
  return [
    { title: t("messages.id"), head: true, show: (row) => h("a", {
      class: "id", href: link("/message", { id: row.offsetId, topic: row.topic }),
    }, row.id) },
    { title: t("topics.queue"), show: (row) => queueText(`${row.broker}:${row.queue} @ ${row.offset}`) },
    { title: t("messages.stored"), show: (row) => time(row.storedMs) },
    { title: t("messages.tag"), show: (row) => row.tag || "–" },
    { title: t("messages.keys"), show: (row) => row.keys.join(" ") || "–" },
    { title: t("messages.size"), numeric: true, show: (row) => bytes(row.bytes) },
    { title: t("messages.body"), show: (row) => h("span", { class: "preview-text" }, row.preview) },
    ...more,
  ];
}

function fieldsOf(how, params) {
  const topic = { name: "topic", label: t("topics.topic"), value: params.topic || "",
    required: how !== "id", hint: how === "id" ? t("messages.topicOptional") : null };
  if (how === "id") {
    return [{ name: "id", label: t("messages.id"), value: params.id || "", required: true }, topic];
  }
  if (how === "key") {
    return [topic, { name: "key", label: t("messages.key"), value: params.key || "",
      required: true }];
  }
  return [topic,
    { name: "beginMs", label: t("messages.begin"), type: "datetime-local",
      value: localInput(Number(params.beginMs) || Date.now() - 3600000) },
    { name: "endMs", label: t("messages.end"), type: "datetime-local",
      value: localInput(Number(params.endMs) || Date.now() + 60000) },
    { name: "tag", label: t("messages.tag"), value: params.tag || "" },
    { name: "body", label: t("messages.bodyHas"), value: params.body || "" }];
}

function results(place, signal) {
  const found = h("div", {});
  const state = h("div", { role: "status" });
  replace(place, found, state);
  let rows = [];

  return async function ask(params) {
    replace(state, loading());
    try {
      const told = await get("/api/messages", params, signal);
      rows = params.position ? [...rows, ...told.rows] : told.rows;
      const part = problems(told);
      replace(found, part, rows.length ? table(messageColumns(), rows, t("nav.messages"))
        : !told.next && empty(t("messages.none")));
      replace(state);
      append(state, [h("p", { class: "about" }, t("messages.lookedAt", {
        found: number(rows.length), looked: number(told.lookedAt), total: number(told.total),
      }))]);
      if (told.isCut && !told.next) append(state, [h("p", {}, t("messages.cut"))]);
      if (told.next) {
        append(state, [button(t("messages.goOn"), () => ask({ ...params, position: told.next }))]);
      }
    } catch (error) {
      if (error.name === "AbortError") return;
      replace(state, failure(error));
    }
  };
}

export function messagesPage(view, params, signal) {
  const body = begin(view, t("nav.messages"), { about: t("messages.about") });
  let how = params.how || "time";
  const ways = h("div", { class: "tabs", role: "tablist", "aria-label": t("messages.how") });
  const panel = h("div", { role: "tabpanel", id: "search-panel" });
  const place = h("div", {});


  function choose(next, moveFocus) {
    how = next;
    const names = [["time", t("messages.byTime")], ["key", t("messages.byKey")],
      ["id", t("messages.byId")]];
    replace(ways, names.map(([value, text], at) => h("button", {
      type: "button", role: "tab", id: `tab-${value}`, "aria-controls": "search-panel",
      "aria-selected": String(value === how), tabindex: value === how ? "0" : "-1",
      onclick: () => choose(value, true),
      onkeydown: (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step) choose(names[(at + step + names.length) % names.length][0], true);
      },
    }, text)));
    if (moveFocus) ways.querySelector("[aria-selected=true]").focus();
    panel.setAttribute("aria-labelledby", `tab-${how}`);
    const fields = fieldsOf(how, params);
    const form = h("form", {
      class: "form row",
      onsubmit: (event) => {
        event.preventDefault();
        const told = values(form, fields);
        if (how === "id") {
          go("/message", { id: told.id.trim(), topic: (told.topic || "").trim() });
          return;
        }
        note({ how, topic: told.topic, key: told.key });
        results(place, signal)(told);
      },
    }, fields.map(field), h("button", { type: "submit", class: "primary" }, t("action.search")));
    replace(panel, form);
    replace(place, empty(t("messages.start")));
  }

  replace(body, card("", ways, panel), card(t("messages.found"), place));
  choose(how, false);
}
