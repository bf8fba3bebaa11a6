// The beginning of a page: its heading, the way back, what can be done.

import { h, replace } from "../dom.js";
import { link } from "../router.js";

export function begin(view, title, { back, actions, about } = {}) {
  const body = h("div", {});
  replace(view,
    back && h("p", { class: "crumb" }, h("a", { href: link(back[0], back[2]) }, `← ${back[1]}`)),
    h("div", { class: "page-head" },
      h("div", {}, h("h1", {}, title), about && h("p", { class: "about" }, about)),
      h("div", { class: "actions" }, actions)),
    body);
  return body;
}

export function card(title, ...children) {
  return h("section", { class: "card" }, title && h("h2", {}, title), children);
}

export function badge(kind, text) {
  return h("span", { class: `badge ${kind}` }, text);
}

export function button(text, onclick, kind = "") {
  return h("button", { type: "button", class: kind, onclick }, text);
}

// A queue and an offset, which stay in one line.
export function queueText(text) {
  return h("span", { class: "place" }, text);
}
