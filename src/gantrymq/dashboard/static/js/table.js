// Tables: simple ones of rows that are there, and paged ones whose rows the server cuts.

import { announce, freshId, h, replace } from "./dom.js";
import { number } from "./format.js";
import { t } from "./i18n.js";
import { note } from "./router.js";
import { empty, failure, loading, problems } from "./states.js";

// Columns are { title, show(row), numeric, head }; on a telephone each row becomes a card.
export function table(columns, rows, caption) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: "data" },
      h("caption", { class: "visually-hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map((each) => (
        h("th", { scope: "col", class: each.numeric ? "numeric" : "" }, each.title))))),
      h("tbody", {}, rows.map((row) => h("tr", {}, columns.map((each) => (
        h(each.head ? "th" : "td", {
          scope: each.head ? "row" : null, class: each.numeric ? "numeric" : "",
          "data-label": each.title,
        }, h("div", { class: "cell" }, each.show(row))))))))));
}

export function pairs(entries) {
  return h("dl", { class: "pairs" }, entries.filter(Boolean).map(([name, value]) => (
    h("div", {}, h("dt", {}, name), h("dd", {}, value === "" ? "–" : value ?? "–")))));
}

// A list with a filter and pages. `ask(params)` returns { rows, total, page, rowsMax, problems }.
export function pagedTable({ caption, columns, ask, params, kinds, signal, emptyText, actions }) {
  const state = {
    filter: params.filter || "", page: Number(params.page) || 1,
    kinds: params.kinds || (kinds ? kinds[0][0] : ""),
  };
  const place = h("div", {});
  let asked = 0;

  async function refresh(quiet = false) {
    asked += 1;
    const mine = asked;
    if (!quiet) replace(place, loading());
    place.setAttribute("aria-busy", "true");
    try {
      const told = await ask(state);
      if (mine !== asked || signal.aborted) return;
      replace(place, shown(told));
      announce(t("table.found", { count: number(told.total) }));
    } catch (error) {
      if (error.name === "AbortError" || mine !== asked || signal.aborted) return;
      replace(place, failure(error, () => refresh()));
    } finally {
      if (mine === asked) place.removeAttribute("aria-busy");
    }
  }

  function turn(page) {
    state.page = page;
    note({ page: page === 1 ? "" : page });
    refresh();
  }

  function shown(told) {
    const part = problems(told);
    if (!told.total) return [part, empty(state.filter ? t("table.noMatch") : emptyText)];
    return [part, table(columns, told.rows, caption), pager(told, turn)];
  }

  const id = freshId("filter");
  let wait = null;
  const search = h("input", {
    type: "search", id, value: state.filter, placeholder: t("table.filter"),
    oninput: (event) => {
      window.clearTimeout(wait);
      wait = window.setTimeout(() => {
        state.filter = event.target.value.trim();
        state.page = 1;
        note({ filter: state.filter, page: "" });
        refresh();
      }, 250);
    },
  });
  const bar = h("div", { class: "bar" },
    h("label", { for: id, class: "visually-hidden" }, t("table.filter")), search,
    kinds && kindChoice(kinds, state, refresh),
    h("span", { class: "space" }),
    h("button", { type: "button", onclick: () => refresh() }, t("action.refresh")), actions);
  refresh();
  return { element: h("div", {}, bar, place), refresh };
}

function kindChoice(kinds, state, refresh) {
  const id = freshId("kinds");
  return h("span", { class: "inline-field" },
    h("label", { for: id }, t("table.kinds")),
    h("select", {
      id,
      onchange: (event) => {
        state.kinds = event.target.value;
        state.page = 1;
        note({ kinds: state.kinds, page: "" });
        refresh();
      },
    }, kinds.map(([value, text]) => (
      h("option", { value, selected: value === state.kinds }, text)))));
}

function pager(told, turn) {
  const pages = Math.max(Math.ceil(told.total / told.rowsMax), 1);
  const first = (told.page - 1) * told.rowsMax + 1;
  const range = t("table.range", {
    first: number(first), last: number(first + told.rows.length - 1), total: number(told.total),
  });
  return h("nav", { class: "pager", "aria-label": t("table.pages") },
    h("span", {}, range),
    pages > 1 && h("span", { class: "space" }),
    pages > 1 && h("button", {
      type: "button", disabled: told.page <= 1, onclick: () => turn(told.page - 1),
    }, t("action.previous")),
    pages > 1 && h("span", {}, t("table.page", { page: told.page, pages })),
    pages > 1 && h("button", {
      type: "button", disabled: told.page >= pages, onclick: () => turn(told.page + 1),
    }, t("action.next")));
}
