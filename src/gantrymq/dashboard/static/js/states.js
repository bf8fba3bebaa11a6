// What a place shows while it has nothing to show: that it waits, why it failed, that it is empty.

import { h, replace } from "./dom.js";
import { t } from "./i18n.js";

export function loading() {
  return h("p", { class: "state loading", role: "status" },
    h("span", { class: "spinner", "aria-hidden": "true" }), t("state.loading"));
}

export function empty(text) {
  return h("p", { class: "state empty" }, text);
}

export function errorText(error) {
  if (error.kind === "unreachable") return t("error.unreachable");
  if (error.kind === "readOnly") return t("error.readOnly");
  if (error.kind === "role") return t("error.role");
  if (error.kind === "throttled") return `${t("error.throttled")} (${error.message})`;
  if (error.kind === "password") return t("error.password");
  if (error.kind === "late") return t("error.late");
  return error.message || t("error.unknown");
}

export function failure(error, again) {
  return h("div", { class: "notice wrong", role: "alert" },
    h("strong", {}, t("error.title")), " ", errorText(error),
    again && h("button", { type: "button", class: "small", onclick: again }, t("action.retry")));
}

// A part is missing: who did not answer is named.
export function problems(told) {
  if (!told.problemCount) return null;
  const more = told.problemCount - told.problems.length;
  return h("div", { class: "notice partial", role: "alert" },
    h("strong", {}, t("state.partial")),
    h("ul", {}, told.problems.map((each) => h("li", {}, each)),
      more > 0 && h("li", {}, t("state.more", { count: more }))));
}

export function notice(kind, ...children) {
  return h("div", { class: `notice ${kind}`, role: "status" }, children);
}

// Loads into a place; shows waiting, failure with another try, or what `show` makes of it.
export async function load(place, ask, show, signal) {
  replace(place, loading());
  place.setAttribute("aria-busy", "true");
  try {
    const told = await ask();
    if (signal && signal.aborted) return;
    replace(place, show(told));
  } catch (error) {
    if (error.name === "AbortError" || (signal && signal.aborted)) return;
    replace(place, failure(error, () => load(place, ask, show, signal)));
  } finally {
    place.removeAttribute("aria-busy");
  }
}
