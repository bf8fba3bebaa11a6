// What surrounds every page: header, navigation, theme and language.

import { post } from "./api.js";
import { freshId, h, icon, replace } from "./dom.js";
import { LANGUAGES, language, setLanguage, t } from "./i18n.js";
import { link, show, where } from "./router.js";
import { me } from "./me.js";
import { passwordDialog } from "./pages/password.js";

const SECTIONS = () => [
  ["/", t("nav.overview"), ["/"]],
  ["/brokers", t("nav.brokers"), ["/brokers", "/broker"]],
  ["/topics", t("nav.topics"), ["/topics", "/topic"]],
  ["/groups", t("nav.groups"), ["/groups", "/group"]],
  ["/producers", t("nav.producers"), ["/producers"]],
  ["/messages", t("nav.messages"), ["/messages", "/message"]],
  ["/dlq", t("nav.dlq"), ["/dlq"]],
  ["/pipelines", t("nav.pipelines"), ["/pipelines", "/run"]],
  ["/configuration", t("nav.configuration"), ["/configuration"]],
  ...(me.may("admin") ? [["/audit", t("nav.audit"), ["/audit"]]] : []),
];

export function applyTheme(theme) {
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

export function themeChoice() {
  const id = freshId("theme");
  const kept = window.localStorage.getItem("theme") || "system";
  return h("span", { class: "inline-field" },
    h("label", { for: id }, t("shell.theme")),
    h("select", {
      id, "data-test": "theme",
      onchange: (event) => {
        window.localStorage.setItem("theme", event.target.value);
        applyTheme(event.target.value);
      },
    }, [["system", t("theme.system")], ["light", t("theme.light")], ["dark", t("theme.dark")]]
      .map(([value, text]) => h("option", { value, selected: value === kept }, text))));
}

export function languageChoice(changed) {
  const id = freshId("language");
  return h("span", { class: "inline-field" },
    h("label", { for: id }, t("shell.language")),
    h("select", {
      id, "data-test": "language",
      onchange: (event) => {
        setLanguage(event.target.value);
        changed();
      },
    }, LANGUAGES.map(([code, name]) => (
      h("option", { value: code, lang: code, selected: code === language() }, name)))));
}

function navigation() {
  const { path } = where();
  return h("ul", {}, SECTIONS().map(([target, text, own]) => h("li", {},
    h("a", { href: link(target), "aria-current": own.includes(path) ? "page" : null }, text))));
}

async function logOut() {
  try {
    await post("/api/logout");
  } finally {
    window.location.reload();
  }
}

function account() {
  if (!me.login) return h("span", { class: "who" }, t("shell.noLogin"));
  return h("details", { class: "menu" },
    h("summary", {}, me.user, h("span", { class: "badge" }, me.role)),
    h("div", { class: "menu-body" },
      h("button", { type: "button", onclick: passwordDialog }, t("shell.password")),
      h("button", { type: "button", onclick: logOut }, t("shell.logout"))));
}

// Builds everything; returns what the router needs when the address changes.
export function makeShell(root, rebuild) {
  const view = h("main", { id: "content", tabindex: "-1" });
  const nav = h("nav", { "aria-label": t("shell.navigation"), id: "navigation" }, navigation());
  const toggle = h("button", {
    type: "button", class: "icon nav-toggle", "aria-expanded": "false",
    "aria-controls": "navigation", "aria-label": t("shell.menu"),
    onclick: () => {
      const open = document.body.classList.toggle("nav-open");
      toggle.setAttribute("aria-expanded", String(open));
    },
  }, "☰");
  replace(root,
    h("a", { class: "skip", href: "#content", onclick: (event) => {
      event.preventDefault();
      view.focus();
    } }, t("shell.skip")),
    h("header", { class: "top" },
      toggle, h("a", { class: "brand", href: link("/") },
        icon(26), "gantrymq"),
      me.readOnly && h("span", { class: "badge warn" }, t("shell.readOnly")),
      h("span", { class: "space" }), themeChoice(), languageChoice(rebuild), account()),
    h("div", { class: "columns" }, nav, view));

  return function render(isFirst) {
    document.body.classList.remove("nav-open");
    toggle.setAttribute("aria-expanded", "false");
    replace(nav, navigation());
    show(view);
    const title = view.querySelector("h1");
    document.title = title ? `${title.textContent} · gantrymq` : "gantrymq";
    if (title && !isFirst) {
      title.setAttribute("tabindex", "-1");
      title.focus();
    }
    window.scrollTo(0, 0);
  };
}
