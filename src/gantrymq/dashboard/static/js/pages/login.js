import { post } from "../api.js";
import { freshId, h, icon, replace } from "../dom.js";
import { t } from "../i18n.js";
import { loadMe } from "../me.js";
import { languageChoice, themeChoice } from "../shell.js";
import { failure } from "../states.js";

export function loginPage(root, done) {
  const told = h("div", { "aria-live": "assertive" });
  const userId = freshId("user");
  const passwordId = freshId("password");
  const user = h("input", { id: userId, name: "user", autocomplete: "username", required: true });
  const password = h("input", {
    id: passwordId, name: "password", type: "password", autocomplete: "current-password",
    required: true,
  });
  const enter = h("button", { type: "submit", class: "primary" }, t("login.enter"));
  const form = h("form", {
    class: "form",
    onsubmit: async (event) => {
      event.preventDefault();
      enter.disabled = true;
      try {
        await post("/api/login", { user: user.value, password: password.value });
        await loadMe();
        done();
      } catch (error) {
        replace(told, failure(error));
        password.value = "";
        password.focus();
      } finally {
        enter.disabled = false;
      }
    },
  },
  h("div", { class: "field" }, h("label", { for: userId }, t("login.user")), user),
  h("div", { class: "field" }, h("label", { for: passwordId }, t("login.password")), password),
  told, enter, h("p", { class: "about" }, t("login.hint")));
  document.title = `${t("login.title")} · gantrymq`;
  replace(root, h("main", { class: "login card" },
    icon(44),
    h("h1", {}, t("login.title")), form,
    h("p", { class: "choices" }, themeChoice(), languageChoice(() => loginPage(root, done)))));
  user.focus();
}
