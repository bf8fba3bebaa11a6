import { get } from "../api.js";
import { h, replace } from "../dom.js";
import { number, short } from "../format.js";
import { t } from "../i18n.js";
import { me } from "../me.js";
import { go, link } from "../router.js";
import { pagedTable } from "../table.js";
import { groupForm } from "./group_forms.js";
import { badge, begin, button, card } from "./head.js";

export function groupState(row) {
  const marks = [];
  if (row.error) marks.push(badge("bad", t("groups.notKnown")));
  else if (row.neverOnline) marks.push(badge("", t("groups.neverOnline")));
  else if (row.members) marks.push(badge("good", t("groups.online")));
  else if (row.members === 0) marks.push(badge("", t("groups.offline")));
  else marks.push(badge("bad", t("groups.notKnown")));
  if (row.mismatch) marks.push(badge("bad", t("groups.mismatch")));
  if (row.enabled === false) marks.push(badge("warn", t("groups.disabled")));
  return marks.map((each) => [each, " "]);
}

export function groupsPage(view, params, signal) {
  const actions = me.mayChange("operator") && button(t("groups.create"), () => groupForm(
    null, (told) => go("/group", { name: told.group })), "primary");
  const body = begin(view, t("nav.groups"), { actions });
  const { element } = pagedTable({
    caption: t("nav.groups"), params, signal, emptyText: t("groups.none"),
    kinds: [["normal", t("kind.normal")], ["system", t("kind.system")],
      ["normal,system", t("kind.all")]],
    ask: (state) => get("/api/groups", state, signal),
    columns: [
      { title: t("groups.group"), head: true,
        show: (row) => h("a", { href: link("/group", { name: row.name }) }, row.name) },
      { title: t("groups.state"), show: groupState },
      { title: t("groups.members"), numeric: true, show: (row) => number(row.members) },
      { title: t("groups.model"), show: (row) => row.model || "–" },
      { title: t("groups.behind"), numeric: true, show: (row) => number(row.behind) },
      { title: t("groups.rate"), numeric: true, show: (row) => short(row.tps) },
      { title: t("nav.dlq"), show: (row) => (row.hasDeadLetters
        ? h("a", { href: link("/dlq", { group: row.name }) }, t("groups.seeDlq")) : "–") },
    ],
  });
  replace(body, card("", element));
}
