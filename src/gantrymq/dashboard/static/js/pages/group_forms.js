// Making, changing and deleting groups.

import { del, get, post } from "../api.js";
import { formDialog, planDialog } from "../dialog.js";
import { replace } from "../dom.js";
import { t } from "../i18n.js";
import { problems } from "../states.js";

export function groupForm(group, done) {
  const now = group && group.settings.length ? group.settings[0] : {
    enabled: true, broadcast: true, orderly: false, retries: 16, retryQueues: 1, timeoutMin: 15,
  };
  formDialog({
    title: group ? t("groups.edit") : t("groups.create"), action: t("action.save"),
    fields: [
      { name: "group", label: t("groups.group"), value: group ? group.name : "", required: true,
        readonly: Boolean(group), maxlength: 255 },
      { name: "retries", label: t("groups.retries"), type: "number", value: now.retries, min: -1 },
      { name: "retryQueues", label: t("groups.retryQueues"), type: "number",
        value: now.retryQueues, min: 0 },
      { name: "timeoutMin", label: t("groups.timeout"), type: "number", value: now.timeoutMin,
        min: 0 },
      { name: "brokers", label: t("topics.onBrokers"), hint: t("topics.onBrokersHint"),
        value: group ? group.settings.map((each) => each.broker).join(", ") : "" },
      { name: "enabled", label: t("groups.enabled"), type: "checkbox", value: now.enabled },
      { name: "orderly", label: t("groups.orderly"), type: "checkbox", value: now.orderly },
      { name: "broadcast", label: t("groups.broadcast"), type: "checkbox", value: now.broadcast },
    ],
    submit: async (values, box) => {
      const told = await post("/api/group", values);
      if (told.problemCount) {
        replace(box.querySelector(".dialog-body"), problems(told));
        return;
      }
      box.close();
      done(told);
    },
  });
}

export async function deleteGroup(name, done) {
  const plan = await get("/api/group/deletion", { name });
  planDialog({
    title: t("groups.deleteTitle", { name }), plan, action: t("action.delete"),
    submit: async (_values, box) => {
      await del("/api/group", { group: name });
      box.close();
      done();
    },
  });
}
