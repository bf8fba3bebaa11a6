import { get } from "../api.js";
import { replace } from "../dom.js";
import { time } from "../format.js";
import { t } from "../i18n.js";
import { pagedTable } from "../table.js";
import { badge, begin, card } from "./head.js";

function outcome(row) {
  const words = {
    done: t("audit.done"), failed: t("audit.failed"), refused: t("audit.refused"),
    tried: t("audit.tried"),
  };
  const kinds = { done: "good", failed: "bad", refused: "bad", tried: "warn" };
  return badge(kinds[row.outcome] || "", words[row.outcome] || row.outcome);
}

export function auditPage(view, params, signal) {
  const body = begin(view, t("nav.audit"), { about: t("audit.about") });
  const { element } = pagedTable({
    caption: t("nav.audit"), params, signal, emptyText: t("audit.none"),
    ask: (state) => get("/api/audit", { filter: state.filter, page: state.page }, signal),
    columns: [
      { title: t("audit.when"), show: (row) => time(row.time_ms), head: true },
      { title: t("audit.user"), show: (row) => row.user },
      { title: t("audit.role"), show: (row) => row.role || "–" },
      { title: t("audit.address"), show: (row) => row.address },
      { title: t("audit.action"), show: (row) => row.action },
      { title: t("audit.target"), show: (row) => row.target || "–" },
      { title: t("audit.outcome"), show: outcome },
      { title: t("audit.detail"), show: (row) => row.detail || "–" },
    ],
  });
  replace(body, card("", element));
}
