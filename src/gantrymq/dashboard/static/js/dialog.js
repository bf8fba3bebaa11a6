// Dialogs: the browser's own element, which keeps the focus inside and gives it back.

import { append, freshId, h, replace } from "./dom.js";
import { field, values } from "./form.js";
import { t } from "./i18n.js";
import { failure } from "./states.js";

export function openDialog(title, content, { wide = false } = {}) {
  const id = freshId("dialog");
  const box = h("dialog", { "aria-labelledby": id, class: wide ? "wide" : "" },
    h("header", {},
      h("h2", { id }, title),
      h("button", { type: "button", class: "icon", "aria-label": t("action.close"),
        onclick: () => box.close() }, "✕")),
    h("div", { class: "dialog-body" }, content));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

// A form in a dialog. `submit` is asked with the values; what it throws is shown in the dialog.
export function formDialog({ title, intro, fields, action, danger, submit, wide, extra }) {
  const told = h("div", { "aria-live": "assertive" });
  const button = h("button", { type: "submit", class: danger ? "danger" : "primary" }, action);
  const form = h("form", { class: "form", novalidate: false },
    intro, fields.map(field), extra, told,
    h("footer", {},
      h("button", { type: "button", onclick: () => box.close() }, t("action.cancel")), button));
  const box = openDialog(title, form, { wide });
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    replace(told);
    try {
      await submit(values(form, fields), box);
    } catch (error) {
      replace(told, failure(error));
    } finally {
      button.disabled = false;
    }
  });
  return { box, form, button };
}

// Shows what will be gone before it is.
export function planDialog({ title, plan, action, submit }) {
  const rows = plan.losses.map((each) => h("tr", {},
    h("td", {}, each.kind), h("td", {}, each.name), h("td", {}, each.where),
    h("td", {}, each.detail)));
  const intro = h("div", {},
    h("p", {}, t("plan.intro")),
    h("div", { class: "scroll" }, h("table", {},
      h("thead", {}, h("tr", {}, h("th", { scope: "col" }, t("plan.what")),
        h("th", { scope: "col" }, t("plan.name")), h("th", { scope: "col" }, t("plan.where")),
        h("th", { scope: "col" }, t("plan.detail")))),
      h("tbody", {}, rows))));
  const warnings = plan.warnings.map((each) => h("div", { class: "notice partial" }, each));
  append(intro, warnings);
  return formDialog({ title, intro, fields: [], action, danger: true, submit, wide: true });
}
