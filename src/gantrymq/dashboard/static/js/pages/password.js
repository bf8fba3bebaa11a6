import { post } from "../api.js";
import { formDialog } from "../dialog.js";
import { t } from "../i18n.js";

export function passwordDialog() {
  formDialog({
    title: t("shell.password"), action: t("action.save"),
    fields: [
      { name: "old", label: t("password.old"), type: "password", required: true,
        autocomplete: "current-password" },
      { name: "new", label: t("password.new"), type: "password", required: true,
        autocomplete: "new-password", hint: t("password.hint") },
    ],
    submit: async (values) => {
      await post("/api/password", values);
      window.location.reload();
    },
  });
}
