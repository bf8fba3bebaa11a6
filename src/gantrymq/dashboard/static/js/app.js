// Begins: texts, who is there, then the login or the pages.

import { h, replace } from "./dom.js";
import { loadTexts, t } from "./i18n.js";
import { loadMe, me } from "./me.js";
import { page, stop } from "./router.js";
import { applyTheme, makeShell } from "./shell.js";
import { failure } from "./states.js";
import { auditPage } from "./pages/audit.js";
import { brokerPage, brokersPage } from "./pages/brokers.js";
import { configurationPage } from "./pages/configuration.js";
import { deadLettersPage } from "./pages/dlq.js";
import { groupPage } from "./pages/group.js";
import { groupsPage } from "./pages/groups.js";
import { loginPage } from "./pages/login.js";
import { messagePage } from "./pages/message.js";
import { messagesPage } from "./pages/messages.js";
import { overviewPage } from "./pages/overview.js";
import { pipelinesPage, runPage } from "./pages/pipelines.js";
import { producersPage } from "./pages/producers.js";
import { topicPage } from "./pages/topic.js";
import { topicsPage } from "./pages/topics.js";

const root = document.getElementById("app");
let render = null;

page("/", overviewPage);
page("/brokers", brokersPage);
page("/broker", brokerPage);
page("/configuration", configurationPage);
page("/topics", topicsPage);
page("/topic", topicPage);
page("/groups", groupsPage);
page("/group", groupPage);
page("/producers", producersPage);
page("/messages", messagesPage);
page("/message", messagePage);
page("/dlq", deadLettersPage);
page("/pipelines", pipelinesPage);
page("/run", runPage);
page("/audit", auditPage);

function begin() {
  if (me.user) {
    render = makeShell(root, begin);
    render(true);
  } else {
    render = null;
    stop();
    loginPage(root, begin);
  }
}

async function start() {
  applyTheme(window.localStorage.getItem("theme"));
  try {
    await Promise.all([loadTexts(), loadMe()]);
  } catch (error) {
    replace(root, h("main", {}, h("h1", {}, "gantrymq"), failure(error, start)));
    return;
  }
  begin();
}

window.addEventListener("hashchange", () => render && render(false));
window.addEventListener("login-needed", async () => {
  if (!me.user) return;
  me.user = null;
  begin();
  document.getElementById("announcer").textContent = t("login.over");
});

replace(root, h("main", { "aria-busy": "true" }));
start();
