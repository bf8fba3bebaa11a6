import { get, post } from "../api.js";
import { formDialog } from "../dialog.js";
import { freshId, h, replace } from "../dom.js";
import { t } from "../i18n.js";
import { me } from "../me.js";
import { empty, load, notice, problems } from "../states.js";
import { table } from "../table.js";
import { badge, begin, card } from "./head.js";

function change(row, brokers, done) {
  const fields = [
    { name: "broker", label: t("brokers.broker"), type: "select", value: brokers[0],
      options: brokers.map((name) => [name, name]) },
    { name: "value", label: row.name, value: row.values.find((each) => each !== null) || "",
      required: true },
  ];
  formDialog({
    title: t("configuration.change"), intro: h("p", {}, t("configuration.changeAbout")), fields,
    action: t("action.save"),
    submit: async (values, box) => {
      const told = await post("/api/configuration", { ...values, name: row.name });
      box.close();
      done(told);
    },
  });
}

function value(text) {
  if (text === null) return h("span", { class: "about" }, t("configuration.unknown"));
  return h("code", {}, text === "" ? "–" : text);
}

function settings(told, filter, done) {
  const wanted = filter.toLowerCase();
  const rows = told.rows.filter((row) => row.name.toLowerCase().includes(wanted));
  if (!rows.length) return [problems(told), empty(t("table.noMatch"))];
  const columns = [
    { title: t("configuration.setting"), head: true, show: (row) => [row.name, " ",
      row.differs && badge("warn", t("configuration.differs"))] },
    ...told.brokers.map((name, at) => ({ title: name, show: (row) => value(row.values[at]) })),
  ];
  if (me.mayChange("admin")) {
    columns.push({ title: t("table.actions"), show: (row) => row.changeable && h("button", {
      type: "button", class: "small", "aria-label": `${t("configuration.change")}: ${row.name}`,
      onclick: () => change(row, told.brokers, done),
    }, t("action.change")) });
  }
  return [problems(told), table(columns, rows, t("configuration.brokers"))];
}

function servers(told) {
  return [problems(told), table([
    { title: t("configuration.setting"), show: (row) => row.name, head: true },
    ...told.servers.map((name, at) => ({
      title: name, show: (row) => h("code", {}, row.values[at] || "–"),
    })),
  ], told.rows, t("configuration.nameServers"))];
}

export function configurationPage(view, _params, signal) {
  const said = h("div", {});
  const place = h("div", {});
  const below = h("div", {});
  const id = freshId("filter");
  let told = null;
  const done = (changed) => {
    replace(said, notice("good", t("configuration.changed", {
      name: changed.name, before: changed.before, after: changed.after, broker: changed.broker,
    })));
    ask();
  };
  const filter = h("input", {
    type: "search", id, placeholder: t("table.filter"),
    oninput: () => told && replace(place, settings(told, filter.value, done)),
  });
  const ask = () => load(place, () => get("/api/configuration", {}, signal), (answer) => {
    told = answer;
    return settings(told, filter.value, done);
  }, signal);
  const body = begin(view, t("nav.configuration"), { about: t("configuration.about") });
  replace(body, said, card(t("configuration.brokers"), h("div", { class: "bar" },
    h("label", { for: id, class: "visually-hidden" }, t("table.filter")), filter), place),
  card(t("configuration.nameServers"), below));
  ask();
  load(below, () => get("/api/configuration/name-servers", {}, signal), servers, signal);
}
