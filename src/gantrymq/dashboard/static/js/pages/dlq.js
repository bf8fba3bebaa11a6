import { get, post } from "../api.js";
import { formDialog } from "../dialog.js";
import { announce, append, h, replace } from "../dom.js";
import { field, values } from "../form.js";
import { number, time } from "../format.js";
import { t } from "../i18n.js";
import { me } from "../me.js";
import { link } from "../router.js";
import { empty, failure, load, notice, problems } from "../states.js";
import { pagedTable, table } from "../table.js";
import { badge, begin, button, card } from "./head.js";
import { messageColumns } from "./messages.js";

const EVERY_MS = 1000;

function redriveForm(group, done) {
  formDialog({
    title: t("dlq.redriveTitle", { name: group }), action: t("dlq.start"),
    intro: h("p", {}, t("dlq.redriveAbout")),
    fields: [
      { name: "to", label: t("dlq.to"), type: "select", value: "group",
        options: [["group", t("dlq.toGroup")], ["topic", t("dlq.toTopic")]] },
      { name: "tag", label: t("messages.tag") },
      { name: "key", label: t("messages.key") },
      { name: "body", label: t("messages.bodyHas") },
      { name: "rate", label: t("dlq.rate"), type: "number", value: 500, min: 0,
        hint: t("dlq.rateHint") },
      { name: "count", label: t("dlq.count"), type: "number", value: 0, min: 0,
        hint: t("dlq.countHint") },
      { name: "loops", label: t("dlq.loops"), type: "number", value: 3, min: 1,
        hint: t("dlq.loopsHint") },
      { name: "dryRun", label: t("dlq.dryRun"), type: "checkbox" },
    ],
    submit: async (values, box) => {
      await post("/api/dlq/redrive", { ...values, group });
      box.close();
      done();
    },
  });
}

function stateBadge(job) {
  const words = {
    running: t("job.running"), done: t("job.done"), stopped: t("job.stopped"),
    failed: t("job.failed"),
  };
  const kinds = { running: "", done: "good", stopped: "warn", failed: "bad" };
  return badge(kinds[job.state], words[job.state]);
}

function jobRow(job, again) {
  const told = h("div", {});
  return h("li", { class: "job" },
    h("div", { class: "bar" }, stateBadge(job), h("strong", {}, job.group),
      job.dryRun && badge("", t("dlq.dryRun")),
      h("span", { class: "about" }, `${time(job.begunMs)} · ${job.user}`),
      h("span", { class: "space" }),
      job.state === "running" && me.mayChange("operator") && button(t("action.stop"), async () => {
        try {
          await post("/api/dlq/stop", { id: job.id });
          again();
        } catch (error) {
          replace(told, failure(error));
        }
      }, "small")),
    h("progress", { max: String(Math.max(job.total, 1)), value: job.done,
      "aria-label": t("dlq.progress", { group: job.group }) }),
    h("p", { class: "about" }, t("dlq.outcomes", { done: number(job.done), total: number(job.total) }),
      " ", Object.entries(job.outcomes).map(([name, count]) => `${name} ${number(count)}`).join(", ")),
    job.error && notice("wrong", job.error),
    job.examples.map((each) => h("p", { class: "about" }, each)), told);
}

// Jobs, looked at again and again while one runs.
function watchJobs(place, signal, group, ended) {
  let running = false;
  async function step() {
    if (signal.aborted) return;
    try {
      const told = await get("/api/dlq/jobs", { group }, signal);
      replace(place, told.rows.length ? h("ul", { class: "jobs" },
        told.rows.map((job) => jobRow(job, step))) : empty(t("dlq.noJobs")));
      const now = told.rows.some((job) => job.state === "running");
      if (running && !now) {
        announce(t("dlq.ended"));
        ended();
      }
      running = now;
      if (running && !signal.aborted) window.setTimeout(step, EVERY_MS);
    } catch (error) {
      if (error.name !== "AbortError") replace(place, failure(error, step));
    }
  }
  step();
  return step;
}

function letters(group, params, signal) {
  const place = h("div", {});
  const chosen = new Set();
  const said = h("div", { "aria-live": "polite" });
  let rows = [];

  const resend = button(t("dlq.resendChosen"), async () => {
    if (!chosen.size) {
      replace(said, notice("partial", t("dlq.chooseSome")));
      return;
    }
    try {
      const told = await post("/api/dlq/resend", { group, ids: [...chosen] });
      replace(said, problems(told),
        notice("good", t("dlq.resent", { count: Object.keys(told.sent).length })));
    } catch (error) {
      replace(said, failure(error));
    }
  });
  const box = { title: t("dlq.choose"), show: (row) => h("input", {
    type: "checkbox", "aria-label": `${t("dlq.choose")}: ${row.id}`,
    onchange: (event) => (event.target.checked ? chosen.add(row.offsetId)
      : chosen.delete(row.offsetId)),
  }) };
  const more = [{ title: t("dlq.from"), show: (row) => row.from || "–" },
    { title: t("message.retries"), numeric: true, show: (row) => number(row.retries) },
    { title: t("dlq.redriven"), numeric: true, show: (row) => row.redriven }];

  const show = (told, before) => {
    rows = [...before, ...told.rows];
    if (!rows.length) return empty(t("dlq.none"));
    const columns = me.mayChange("operator") ? [box, ...messageColumns(more)]
      : messageColumns(more);
    const parts = [table(columns, rows, t("dlq.letters")),
      h("p", { class: "about" }, t("messages.lookedAt", {
        found: number(rows.length), looked: number(told.lookedAt), total: number(told.total) }))];
    if (told.next) parts.push(button(t("messages.goOn"), () => ask(told.next, rows)));
    return parts;
  };
  const fields = [
    { name: "beginMs", label: t("messages.begin"), type: "datetime-local" },
    { name: "endMs", label: t("messages.end"), type: "datetime-local" },
    { name: "tag", label: t("messages.tag") },
    { name: "body", label: t("messages.bodyHas") },
  ];
  let wanted = {};
  const ask = (position, before) => load(place,
    () => get("/api/dlq/letters", { group, position, ...wanted }, signal),
    (told) => show(told, before), signal);
  const form = h("form", {
    class: "form row",
    onsubmit: (event) => {
      event.preventDefault();
      wanted = values(form, fields);
      chosen.clear();
      ask(null, []);
    },
  }, fields.map(field), h("button", { type: "submit" }, t("action.search")));
  ask(null, []);
  return { element: h("div", {}, form, me.mayChange("operator")
    && h("div", { class: "bar" }, resend), said, place), refresh: () => ask(null, []) };
}

function onePage(view, group, params, signal) {
  const jobs = h("div", {});
  const shown = letters(group, params, signal);
  const actions = [h("a", { class: "button", download: "",
    href: `/api/dlq/export?${new URLSearchParams({ group })}` }, t("dlq.export"))];
  const body = begin(view, group, { back: ["/dlq", t("nav.dlq")], actions });
  replace(body, card(t("dlq.jobs"), jobs), card(t("dlq.letters"), shown.element));
  const step = watchJobs(jobs, signal, group, shown.refresh);
  if (me.mayChange("operator")) {
    append(view.querySelector(".actions"),
      [button(t("dlq.redrive"), () => redriveForm(group, step), "primary")]);
  }
}

export function deadLettersPage(view, params, signal) {
  if (params.group) {
    onePage(view, params.group, params, signal);
    return;
  }
  const jobs = h("div", {});
  const body = begin(view, t("nav.dlq"), { about: t("dlq.about") });
  const { element } = pagedTable({
    caption: t("nav.dlq"), params, signal, emptyText: t("dlq.noGroups"),
    ask: (state) => get("/api/dlq", { filter: state.filter, page: state.page }, signal),
    columns: [
      { title: t("groups.group"), head: true,
        show: (row) => h("a", { href: link("/dlq", { group: row.group }) }, row.group) },
      { title: t("nav.dlq"), numeric: true,
        show: (row) => (row.error ? badge("bad", row.error) : number(row.messages)) },
      { title: t("dlq.last"), show: (row) => time(row.updatedMs) },
    ],
  });
  replace(body, card("", element), card(t("dlq.jobs"), jobs));
  watchJobs(jobs, signal, null, () => {});
}
