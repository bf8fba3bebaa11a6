// Fields with their labels, and their values as JSON has them.

import { freshId, h } from "./dom.js";

function control(spec, id) {
  const shared = {
    id, name: spec.name, required: spec.required, "aria-describedby": spec.hint ? `${id}-hint` : null,
  };
  if (spec.type === "select") {
    return h("select", shared, spec.options.map(([value, text]) => (
      h("option", { value, selected: value === spec.value }, text))));
  }
  if (spec.type === "textarea") {
    return h("textarea", { ...shared, rows: spec.rows || 6, value: spec.value || "",
      spellcheck: "false" });
  }
  if (spec.type === "checkbox") {
    return h("input", { ...shared, type: "checkbox", checked: Boolean(spec.value) });
  }
  return h("input", {
    ...shared, type: spec.type || "text", value: spec.value ?? "", min: spec.min, max: spec.max,
    step: spec.type === "datetime-local" ? "1" : null, autocomplete: spec.autocomplete || "off",
    readonly: spec.readonly, list: spec.list, maxlength: spec.maxlength,
  });
}

export function field(spec) {
  const id = freshId(spec.name);
  const input = control(spec, id);
  const label = h("label", { for: id }, spec.label);
  const hint = spec.hint && h("small", { id: `${id}-hint` }, spec.hint);
  if (spec.type === "checkbox") {
    return h("div", { class: "field check" }, input, label, hint);
  }
  return h("div", { class: `field ${spec.span || ""}` }, label, input, hint);
}

export function values(form, fields) {
  const told = {};
  for (const { name, type } of fields) {
    const input = form.elements.namedItem(name);
    if (type === "checkbox") told[name] = input.checked;
    else if (type === "number") told[name] = input.value === "" ? null : Number(input.value);
    else if (type === "datetime-local") {
      told[name] = input.value ? new Date(input.value).getTime() : null;
    } else told[name] = input.value;
  }
  return Object.fromEntries(Object.entries(told).filter(([, value]) => value !== null));
}
