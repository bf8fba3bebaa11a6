"""Every page loads without a complaint, shows what there is, and can be used by everyone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from axe_playwright_python.sync_playwright import Axe

if TYPE_CHECKING:
    from playwright.sync_api import Browser

    from support.browsers import Visitor
    from support.dashboards import RunningDashboard

pytestmark = pytest.mark.tool("chromium")

PAGES = {
    "overview": ("/", "Throughput"),
    "brokers": ("/brokers", "broker-a:0"),
    "topics": ("/topics", "Orders"),
    "topic": ("/topic?name=Orders", "broker-a:3"),
    "groups": ("/groups", "billing"),
    "group": ("/group?name=billing", "Oldest waits for"),
    "producers": ("/producers", "Clients that are connected"),
    "messages": ("/messages?topic=Orders", "By topic and time"),
    "dead-letters": ("/dlq", "billing"),
    "dead-letters-group": ("/dlq?group=billing", "letter1"),
    "pipelines": ("/pipelines", "archive"),
    "configuration": ("/configuration", "fileReservedTime"),
    "audit": ("/audit", "log in"),
}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_loads_and_shows_what_there_is(visitor: Visitor, name: str) -> None:
    path, shown = PAGES[name]
    visitor.open(path)
    visitor.page.locator("main").get_by_text(shown).first.wait_for()
    visitor.shoot(f"{name}-light")
    assert visitor.page.locator(".notice.wrong").count() == 0
    assert visitor.page.locator("main h1").count() == 1


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_nothing_that_shuts_people_out(visitor: Visitor, name: str, theme: str) -> None:
    path, shown = PAGES[name]
    visitor.page.get_by_label("Theme").select_option(theme)
    visitor.open(path)
    visitor.page.locator("main").get_by_text(shown).first.wait_for()
    found = Axe().run(visitor.page)
    problems = [
        f"{each['id']}: {node['html'][:160]} {node['failureSummary'][:200]}"
        for each in found.response["violations"]
        for node in each["nodes"]
    ]
    assert problems == []


def test_the_login_can_be_used_by_everyone(chromium: Browser, dashboard: RunningDashboard) -> None:
    page = chromium.new_page(color_scheme="dark")
    page.goto(dashboard.url)
    page.get_by_role("button", name="Log in").wait_for()
    page.screenshot(path="build/screenshots/login-dark.png")
    found = Axe().run(page)
    page.close()
    assert found.response["violations"] == []


def test_the_keyboard_is_enough(visitor: Visitor) -> None:
    visitor.open("/topics")
    page = visitor.page
    page.keyboard.press("Tab")
    for _ in range(40):
        if page.evaluate("document.activeElement.className") == "skip":
            break
        page.keyboard.press("Shift+Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "content"
    page.get_by_role("link", name="Groups").focus()
    page.keyboard.press("Enter")
    page.wait_for_function("() => document.activeElement.tagName === 'H1'")
    assert page.title() == "Groups · gantrymq"


def test_pages_can_be_read_on_a_telephone(visitor: Visitor) -> None:
    visitor.page.set_viewport_size({"width": 390, "height": 800})
    for name, (path, shown) in PAGES.items():
        visitor.open(path)
        visitor.page.locator("main").get_by_text(shown).first.wait_for()
        width = visitor.page.evaluate("document.documentElement.scrollWidth")
        visitor.shoot(f"{name}-phone")
        assert width <= 390, f"{name} is {width} wide"
    visitor.page.get_by_role("button", name="Menu").click()
    visitor.page.get_by_role("link", name="Topics").click()
    visitor.settle()
    assert visitor.page.locator("h1").inner_text() == "Topics"


def test_both_languages_and_all_themes(visitor: Visitor) -> None:
    page = visitor.page
    visitor.open("/groups")
    page.get_by_label("Language").select_option("zh")
    visitor.settle()
    assert page.locator("h1").inner_text() == "消费组"
    assert page.locator("html").get_attribute("lang") == "zh-CN"
    for name, (path, _shown) in PAGES.items():
        visitor.open(path)
        text = page.locator("body").inner_text()
        assert not re.search(r"\b(?:nav|state|table|action|groups|topics)\.\w+", text), name
        visitor.shoot(f"{name}-zh-dark" if name == "overview" else f"{name}-zh")
    page.get_by_label("主题颜色").select_option("dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    visitor.open("/")
    visitor.shoot("overview-zh-dark")
    page.get_by_label("主题颜色").select_option("light")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.reload()
    visitor.settle()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == light
    assert page.locator("h1").inner_text() == "概览"
