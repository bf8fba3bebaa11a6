import { get, post } from "../api.js";
import { formDialog } from "../dialog.js";
import { append, h, replace, s } from "../dom.js";
import { bytes, number, time } from "../format.js";
import { t } from "../i18n.js";
import { me } from "../me.js";
import { link } from "../router.js";
import { empty, load, notice, problems } from "../states.js";
import { pairs, table } from "../table.js";
import { badge, begin, button, card } from "./head.js";

function octets(base64) {
  return Uint8Array.from(window.atob(base64), (each) => each.charCodeAt(0));
}

export function hexLines(data) {
  const lines = [];
  for (let at = 0; at < data.length; at += 16) {
    const row = [...data.slice(at, at + 16)];
    const hex = row.map((each) => each.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((each) => (each > 31 && each < 127 ? String.fromCharCode(each) : "."));
    lines.push(`${at.toString(16).padStart(8, "0")}  ${hex.padEnd(47)}  ${text.join("")}`);
  }
  return lines.join("\n");
}

// The forms in which a body can be read: text and JSON only where it is that.
function forms(data) {
  const found = [];
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(data);
    try {
      const parsed = JSON.parse(text);
      if (typeof parsed === "object" && parsed !== null) {
        found.push(["json", "JSON", JSON.stringify(parsed, null, 2)]);
      }
    } catch { /* it is no JSON */ }
    found.push(["text", t("message.text"), text]);
  } catch { /* it is no text */ }
  found.push(["hex", t("message.hex"), hexLines(data)]);
  return found;
}

function bodyView(told) {
  const data = octets(told.body);
  const made = forms(data);
  const place = h("pre", { class: "body", tabindex: "0", "aria-label": t("messages.body") });
  const choice = h("div", { class: "bar", role: "group", "aria-label": t("message.form") });
  const choose = (form) => {
    place.textContent = form[2];
    replace(choice, made.map((each) => h("button", {
      type: "button", class: "small", "aria-pressed": String(each === form),
      onclick: () => choose(each),
    }, each[1])), h("span", { class: "space" }), h("a", {
      class: "button small", download: "",
      href: `/api/message/body?${new URLSearchParams({ id: told.offsetId, topic: told.topic })}`,
    }, t("message.download")));
  };
  choose(made[0]);
  return [choice, told.isCut && notice("partial", t("message.cut", { shown: bytes(data.length),
    whole: bytes(told.bytes) })), data.length ? place : empty(t("message.noBody"))];
}

function detail(told) {
  return [
    card(t("messages.body"), bodyView(told)),
    card(t("message.facts"), pairs([
      [t("messages.id"), h("code", {}, told.uniqueKey || "–")],
      [t("message.offsetId"), h("code", {}, told.offsetId)],
      [t("topics.topic"), h("a", { href: link("/topic", { name: told.topic }) }, told.topic)],
      [t("topics.queue"), `${told.broker}:${told.queue} @ ${number(told.offset)}`],
      [t("messages.tag"), told.tag], [t("messages.keys"), told.keys.join(" ")],
      [t("message.born"), `${time(told.bornMs)} · ${told.bornHost}`],
      [t("messages.stored"), `${time(told.storedMs)} · ${told.storeHost}`],
      [t("messages.size"), bytes(told.bytes)], [t("message.retries"), number(told.retries)],
      [t("message.logOffset"), number(told.logOffset)],
    ])),
    card(t("messages.properties"), pairs(Object.entries(told.properties).map(([name, value]) => (
      [name, h("code", {}, value)]))))];
}

function resendDialog(message, group) {
  const fields = group ? [{ name: "client", label: t("producers.client"), required: true }] : [];
  const choose = group && get("/api/group/members", { name: group }).then((told) => {
    const input = made.form.elements.namedItem("client");
    if (told.members.length) input.value = told.members[0].client;
  }, () => {});
  const made = formDialog({
    title: t("message.resend"), fields, action: t("message.resend"),
    intro: h("p", {}, group ? t("message.resendGroup", { group }) : t("message.resendTopic")),
    submit: async (values, box) => {
      const told = await post("/api/message/resend", {
        id: message.offsetId, topic: message.topic, ...(group ? { group, ...values } : {}),
      });
      const said = group ? `${told.result} ${told.remark}` : t("message.resent", { id: told.id });
      replace(box.querySelector(".dialog-body"), notice("good", said));
    },
  });
  return choose;
}

const KINDS = () => ({
  Pub: t("trace.pub"), SubBefore: t("trace.before"), SubAfter: t("trace.after"),
  EndTransaction: t("trace.transaction"), Recall: t("trace.recall"),
});

// What clients said, along the time between the first and the last of it.
function timeline(traces) {
  const rows = traces.filter((each) => each.kind !== "SubBefore" || !traces.some((other) => (
    other.kind === "SubAfter" && other.request_id === each.request_id)));
  const span = (each) => {
    const cost = each.cost_ms || 0;
    const begun = traces.find((other) => each.kind === "SubAfter" && other.kind === "SubBefore"
      && other.request_id === each.request_id);
    if (begun) return [begun.time_ms, begun.time_ms + cost];
    return [each.time_ms, each.time_ms + cost];
  };
  const spans = rows.map(span);
  const first = Math.min(...spans.map((each) => each[0]));
  const last = Math.max(first + 1, ...spans.map((each) => each[1]));
  const height = rows.length * 34 + 26;
  const x = (ms) => 250 + ((ms - first) / (last - first)) * 420;
  const drawn = s("svg", {
    class: "timeline", viewBox: `0 0 700 ${height}`, role: "img",
    "aria-label": t("message.timelineAbout", { count: rows.length, span: last - first }),
  });
  rows.forEach((each, at) => {
    const y = at * 34 + 8;
    const [begun, ended] = spans[at];
    drawn.append(
      s("text", { x: 0, y: y + 15, class: "mark" }, `${KINDS()[each.kind] || each.kind} · ${each.group}`.slice(0, 38)),
      s("rect", { x: x(begun), y, rx: 3, width: Math.max(x(ended) - x(begun), 4), height: 20,
        class: each.is_success ? "good" : "bad" }));
  });
  drawn.append(s("text", { x: 250, y: height - 4, class: "mark" }, time(first)),
    s("text", { x: 670, y: height - 4, class: "mark end" }, `+${number(last - first)} ms`));
  return h("div", { class: "scroll", tabindex: "0", role: "region",
    "aria-label": t("message.traces") }, drawn);
}

function life(told, message) {
  const tracks = told.tracks.length ? table([
    { title: t("groups.group"), head: true,
      show: (row) => h("a", { href: link("/group", { name: row.group }) }, row.group) },
    { title: t("message.became"), show: (row) => badge(
      { CONSUMED: "good", NOT_CONSUME_YET: "warn", UNKNOWN: "bad" }[row.kind] || "", row.kind) },
    { title: t("message.why"), show: (row) => row.why || "–" },
    { title: t("table.actions"), show: (row) => me.mayChange("operator") && button(
      t("message.resend"), () => resendDialog(message, row.group), "small") },
  ], told.tracks, t("message.tracks")) : empty(t("message.noTracks"));
  const copies = told.copies.length > 0 && card(t("message.copies"), table([
    { title: t("groups.group"), show: (row) => row.group, head: true },
    { title: t("topics.kind"), show: (row) => row.kind },
    { title: t("messages.id"), show: (row) => h("a", {
      href: link("/message", { id: row.offsetId, topic: row.topic }) }, row.offsetId) },
    { title: t("messages.stored"), show: (row) => time(row.storedMs) },
  ], told.copies, t("message.copies")));
  return [problems(told), card(t("message.tracks"), tracks), copies,
    card(t("message.traces"), told.traces.length ? [timeline(told.traces), table([
      { title: t("message.when"), show: (row) => time(row.time_ms), head: true },
      { title: t("trace.kind"), show: (row) => KINDS()[row.kind] || row.kind },
      { title: t("groups.group"), show: (row) => row.group },
      { title: t("trace.host"), show: (row) => row.client_host },
      { title: t("trace.cost"), numeric: true, show: (row) => number(row.cost_ms) },
      { title: t("trace.success"), show: (row) => (row.is_success ? badge("good", t("yes"))
        : badge("bad", t("no"))) },
    ], told.traces, t("message.traces"))] : empty(t("message.noTraces")))];
}

export function messagePage(view, params, signal) {
  const { id = "", topic } = params;
  const place = h("div", {});
  const after = h("div", {});
  const body = begin(view, t("message.title"), {
    back: ["/messages", t("nav.messages"), { topic }], about: id,
  });
  replace(body, place, after);
  load(place, () => get("/api/message", { id, topic }, signal), (told) => {
    if (me.mayChange("operator")) {
      append(view.querySelector(".actions"), [button(t("message.resend"),
        () => resendDialog(told, null))]);
    }
    load(after, () => get("/api/message/life", { id: told.offsetId, topic: told.topic }, signal),
      (found) => life(found, told), signal);
    return detail(told);
  }, signal);
}
