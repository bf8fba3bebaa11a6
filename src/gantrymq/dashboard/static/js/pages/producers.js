import { get } from "../api.js";
import { replace } from "../dom.js";
import { time } from "../format.js";
import { t } from "../i18n.js";
import { empty, problems } from "../states.js";
import { pagedTable, table } from "../table.js";
import { begin, card } from "./head.js";

const columns = () => [
  { title: t("producers.group"), show: (row) => row.group, head: true },
  { title: t("producers.client"), show: (row) => row.client },
  { title: t("brokers.address"), show: (row) => row.address },
  { title: t("producers.language"), show: (row) => row.language },
  { title: t("brokers.broker"), show: (row) => row.broker },
  { title: t("producers.heard"), show: (row) => time(row.heardMs) },
];

export function producerTable(told) {
  if (!told.rows.length) return [problems(told), empty(t("producers.none"))];
  return [problems(told), table(columns(), told.rows, t("nav.producers"))];
}

export function producersPage(view, params, signal) {
  const body = begin(view, t("nav.producers"), { about: t("producers.about") });
  const { element } = pagedTable({
    caption: t("nav.producers"), params, signal, emptyText: t("producers.none"),
    ask: (state) => get("/api/producers", { filter: state.filter, page: state.page }, signal),
    columns: columns(),
  });
  replace(body, card("", element));
}
