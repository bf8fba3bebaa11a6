// Moving a group: first where it would go, then the move, then the way back.

import { get, post } from "../api.js";
import { formDialog, openDialog } from "../dialog.js";
import { h, replace } from "../dom.js";
import { localInput, number, time } from "../format.js";
import { t } from "../i18n.js";
import { empty, failure, load, notice } from "../states.js";
import { table } from "../table.js";
import { button, queueText } from "./head.js";

export function movesTable(moves) {
  return table([
    { title: t("topics.queue"), show: (row) => queueText(`${row.broker}:${row.queue}`), head: true },
    { title: t("reset.before"), numeric: true, show: (row) => number(row.before) },
    { title: t("reset.after"), numeric: true, show: (row) => number(row.after) },
    { title: t("reset.repeated"), numeric: true, show: (row) => number(row.repeated) },
    { title: t("reset.skipped"), numeric: true, show: (row) => number(row.skipped) },
  ], moves, t("reset.preview"));
}

function target(values) {
  const told = { group: values.group, topic: values.topic, queue: values.queue };
  if (values.how === "time") told.timeMs = values.time;
  else if (values.how === "offset") told.offset = values.offset;
  else told.to = values.how;
  if (!told.queue) delete told.queue;
  return told;
}

export function resetForm(group, topics, done) {
  const shown = h("div", { class: "preview", "aria-live": "polite" });
  const fields = [
    { name: "topic", label: t("topics.topic"), type: "select", value: topics[0],
      options: topics.map((name) => [name, name]), required: true },
    { name: "how", label: t("reset.how"), type: "select", value: "latest",
      options: [["latest", t("reset.latest")], ["earliest", t("reset.earliest")],
        ["time", t("reset.toTime")], ["offset", t("reset.toOffset")]] },
    { name: "time", label: t("reset.time"), type: "datetime-local",
      value: localInput(Date.now() - 3600000) },
    { name: "offset", label: t("reset.offset"), type: "number", value: 0, min: 0 },
    { name: "queue", label: t("reset.queue"), hint: t("reset.queueHint") },
    { name: "offline", label: t("reset.offline"), type: "checkbox" },
  ];
  let previewed = "";
  const made = formDialog({
    title: t("reset.title", { name: group }), fields, action: t("reset.preview"), extra: shown,
    wide: true,
    submit: async (values, box) => {
      const order = { ...target({ ...values, group }), offline: values.offline };
      const text = JSON.stringify(order);
      if (previewed !== text) {
        const told = await get("/api/group/reset", order);
        previewed = text;
        replace(shown, h("h3", {}, t("reset.preview")), movesTable(told.moves),
          h("p", { class: "about" }, told.online ? t("reset.online") : t("reset.nobody")));
        made.button.textContent = t("reset.do");
        return;
      }
      const told = await post("/api/group/reset", order);
      replace(box.querySelector(".dialog-body"), notice("good", t("reset.done")),
        movesTable(told.moves), h("p", { class: "about" }, t("reset.undoHint")));
      done();
    },
  });
  const choose = () => {
    previewed = "";
    replace(shown);
    made.button.textContent = t("reset.preview");
    const how = made.form.elements.namedItem("how").value;
    for (const name of ["time", "offset"]) {
      made.form.elements.namedItem(name).closest(".field").hidden = how !== name;
    }
  };
  made.form.addEventListener("input", choose);
  choose();
}

export function undoDialog(group, done) {
  const place = h("div", {});
  const box = openDialog(t("undo.title", { name: group }), place, { wide: true });
  const show = (told) => {
    if (!told.rows.length) return empty(t("undo.none"));
    return table([
      { title: t("undo.when"), show: (row) => time(row.timeMs), head: true },
      { title: t("topics.topic"), show: (row) => row.topic },
      { title: t("groups.queues"), numeric: true, show: (row) => number(row.queues) },
      { title: t("table.actions"), show: (row) => button(t("undo.preview"), () => preview(row),
        "small") },
    ], told.rows, t("undo.title", { name: group }));
  };
  const preview = async (row) => {
    const told = h("div", {});
    try {
      const plan = await get("/api/group/undo/preview", { id: row.id });
      replace(place, movesTable(plan.moves), told, h("footer", {},
        button(t("undo.do"), async () => {
          try {
            await post("/api/group/undo", { id: row.id, group });
            box.close();
            done();
          } catch (error) {
            replace(told, failure(error));
          }
        }, "primary")));
    } catch (error) {
      replace(place, failure(error));
    }
  };
  load(place, () => get("/api/group/undo", { group }), show);
}
