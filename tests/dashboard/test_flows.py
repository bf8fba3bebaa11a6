"""What operators do, clicked through as they do it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from gantrymq.admin import groups
from gantrymq.admin.session import Session
from support import dashboards
from support.browsers import Visitor
from support.dashboards import SCRIPT

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Locator

    from support.dashboards import RunningDashboard
    from support.gantry import Running

pytestmark = pytest.mark.tool("chromium")


def dialog(visitor: Visitor) -> Locator:
    return visitor.page.locator("dialog[open]")


def test_a_wrong_password_is_refused_and_said(
    chromium: Browser, dashboard: RunningDashboard
) -> None:
    page = chromium.new_page(locale="en-GB")
    page.goto(dashboard.url)
    page.get_by_label("User").fill(dashboard.user)
    page.get_by_label("Password").fill("not the password")
    page.get_by_role("button", name="Log in").click()
    page.get_by_text("No such user, or another password.").wait_for()
    assert page.locator("nav").count() == 0
    page.close()


def test_a_topic_from_its_making_to_its_end(visitor: Visitor) -> None:
    page = visitor.page
    visitor.open("/topics")
    page.get_by_role("button", name="Create topic").click()
    dialog(visitor).get_by_label("Topic", exact=True).fill("Flow")
    dialog(visitor).get_by_label("Read queues").fill("2")
    dialog(visitor).get_by_label("Write queues").fill("2")
    visitor.shoot("topic-create", whole=False)
    dialog(visitor).get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="Flow").wait_for()
    visitor.settle()
    assert "2 / 2" in page.locator("main").inner_text()

    page.get_by_role("button", name="Send a message").click()
    dialog(visitor).get_by_label("Tag").fill("flow")
    dialog(visitor).get_by_label("Keys").fill("flow-1")
    dialog(visitor).get_by_label("Body").fill('{"hello": "world"}')
    dialog(visitor).get_by_role("button", name="Send").click()
    dialog(visitor).get_by_text("Sent: SEND_OK").wait_for()
    visitor.shoot("topic-sent", whole=False)
    dialog(visitor).get_by_role("link").click()
    page.get_by_role("heading", name="Message", exact=True).first.wait_for()
    visitor.settle()
    assert '"hello": "world"' in page.locator("pre.body").inner_text()
    page.get_by_role("button", name="Hex").click()
    assert page.locator("pre.body").inner_text().startswith("00000000  7b 22 68")
    visitor.shoot("message")

    visitor.open("/messages?topic=Flow")
    page.get_by_role("tab", name="By key").click()
    page.get_by_label("Key", exact=True).fill("flow-1")
    page.get_by_role("button", name="Search").click()
    page.get_by_text("1 found").wait_for()
    assert page.locator("tbody tr").count() == 1

    visitor.open("/topic?name=Flow")
    page.get_by_role("button", name="Edit").click()
    dialog(visitor).get_by_label("Read queues").fill("3")
    dialog(visitor).get_by_label("Write queues").fill("3")
    dialog(visitor).get_by_role("button", name="Save").click()
    page.get_by_text("3 / 3").wait_for()
    page.get_by_role("button", name="Delete").click()
    dialog(visitor).get_by_text("This will be gone:").wait_for()
    assert "1 messages" in dialog(visitor).inner_text()
    visitor.shoot("topic-delete", whole=False)
    dialog(visitor).get_by_role("button", name="Delete").click()
    page.wait_for_url("**/#/topics")
    visitor.settle()
    assert "Flow" not in page.locator("main").inner_text()


def test_messages_are_found_by_time_and_shown_in_every_form(visitor: Visitor) -> None:
    page = visitor.page
    visitor.open("/messages?topic=Orders")
    page.get_by_role("button", name="Search").click()
    page.get_by_text("42 found").wait_for()
    visitor.shoot("messages-found")
    page.get_by_role("tab", name="By key").click()
    page.get_by_label("Key", exact=True).fill("binary")
    page.get_by_role("button", name="Search").click()
    page.locator("tbody a.id").click()
    visitor.settle()
    forms = page.get_by_role("group", name="Show as").get_by_role("button")
    assert forms.all_inner_texts() == ["Hex"]
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert download.value.path().read_bytes() == bytes(range(256))


def test_what_is_hostile_is_shown_as_it_is_written(visitor: Visitor) -> None:
    page = visitor.page
    visitor.open("/messages?topic=Orders&how=key&key=hostile")
    page.get_by_role("button", name="Search").click()
    page.get_by_text("1 found").wait_for()
    assert SCRIPT in page.locator("tbody").inner_text()
    page.locator("tbody a.id").click()
    visitor.settle()
    assert page.locator("pre.body").inner_text() == SCRIPT
    assert page.locator("main dl").filter(has_text=SCRIPT).count() == 1
    assert page.locator("main script, main img, main b").count() == 0
    visitor.open(f"/topic?name={SCRIPT}")
    assert SCRIPT in page.locator("h1").inner_text()
    assert page.title() != "owned"
    visitor.complaints[:] = [each for each in visitor.complaints if "404" not in each]


def test_a_group_is_moved_after_a_preview_and_put_back(visitor: Visitor, server: Running) -> None:
    page = visitor.page

    async def offsets() -> list[int]:
        async with Session(server.name_server) as session:
            told = await groups.progress(session, "billing")
            return [each.consumer_offset for each in told.queues if each.queue.topic == "Orders"]

    before = dashboards.apart(offsets())
    visitor.open("/group?name=billing")
    page.get_by_role("button", name="Reset").click()
    dialog(visitor).get_by_label("Move it").select_option("earliest")
    dialog(visitor).get_by_role("button", name="Preview").click()
    dialog(visitor).get_by_text("Come again").wait_for()
    visitor.shoot("group-reset", whole=False)
    assert dashboards.apart(offsets()) == before
    dialog(visitor).get_by_role("button", name="Move the group").click()
    dialog(visitor).get_by_text("The group was moved.").wait_for()
    assert dashboards.apart(offsets()) == [0, 0, 0, 0]
    dialog(visitor).get_by_role("button", name="Close").click()

    page.get_by_role("button", name="Take back").click()
    dialog(visitor).get_by_role("button", name="Preview").first.click()
    dialog(visitor).get_by_role("button", name="Put it back").click()
    page.wait_for_function("() => !document.querySelector('dialog[open]')")
    assert dashboards.apart(offsets()) == before


def test_members_are_seen_with_what_they_do_and_where_they_disagree(
    visitor: Visitor, server: Running
) -> None:
    page = visitor.page
    visitor.open("/topic?name=Payments")
    page.get_by_role("button", name="Send a message").click()
    dialog(visitor).get_by_label("Keys").fill("traced")
    dialog(visitor).get_by_label("Body").fill("a payment")
    dialog(visitor).get_by_label("Trace it").check()
    dialog(visitor).get_by_role("button", name="Send").click()
    dialog(visitor).get_by_text("Sent: SEND_OK").wait_for()
    address = dialog(visitor).get_by_role("link").get_attribute("href")
    assert address is not None
    dialog(visitor).get_by_role("button", name="Close").click()
    with dashboards.members(server.name_server, "ledger", "Payments"):
        for _ in range(60):
            visitor.open("/group?name=ledger")
            if page.get_by_text("subscribe differently").count():
                break
            visitor.complaints.clear()  # until the group is known, asking for it is an error
        page.get_by_text("Members of this group subscribe differently").wait_for()
        assert page.locator("main b").count() == 0
        assert "one<b>1</b>" in page.locator("main").inner_text()
        visitor.shoot("group-members")
        page.get_by_role("button", name="Running info").first.click()
        dialog(visitor).get_by_text("Payments").first.wait_for()
        visitor.shoot("group-running", whole=False)
        dialog(visitor).get_by_role("button", name="Close").click()
        page.get_by_role("button", name="Stacks").first.click()
        dialog(visitor).locator("pre").wait_for()
        assert dialog(visitor).locator("pre").inner_text().strip()
        dialog(visitor).get_by_role("button", name="Close").click()
        visitor.open("/groups")
        row = page.locator("tbody tr").filter(has_text="ledger")
        assert "subscriptions differ" in row.inner_text()
    for _ in range(60):
        visitor.open(address.removeprefix("#"))
        if page.locator("svg.timeline rect").count():
            break
    visitor.shoot("message-trace")
    assert page.locator("svg.timeline rect").count() >= 1
    assert "sent" in page.locator("main").inner_text()


def test_dead_letters_are_sent_again_by_a_job(visitor: Visitor) -> None:
    page = visitor.page
    visitor.open("/dlq?group=billing")
    assert page.locator("tbody tr").count() == 3
    page.get_by_role("button", name="Redrive").click()
    dialog(visitor).get_by_label("Send to").select_option("topic")
    visitor.shoot("dlq-redrive", whole=False)
    dialog(visitor).get_by_role("button", name="Start").click()
    page.get_by_text("3 of 3: sent 3").wait_for()
    visitor.shoot("dlq-done")
    visitor.open("/messages?topic=Orders&how=time")
    page.get_by_label("Body has").fill("letter")
    page.get_by_role("button", name="Search").click()
    page.get_by_text("3 found").wait_for()
    with page.expect_download() as download:
        visitor.open("/dlq?group=billing")
        page.get_by_role("link", name="Export").click()
    lines = download.value.path().read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["body"] for line in lines] == ["letter 0", "letter 1", "letter 2"]


def test_a_setting_is_changed_and_the_log_says_who(visitor: Visitor) -> None:
    page = visitor.page
    visitor.open("/configuration")
    page.get_by_label("Filter by name").fill("fileReserved")
    page.get_by_role("button", name="Change a setting: fileReservedTime").click()
    dialog(visitor).get_by_label("fileReservedTime").fill("48")
    dialog(visitor).get_by_role("button", name="Save").click()
    page.get_by_text("fileReservedTime was 72, is 48 now.").wait_for()
    visitor.open("/audit")
    text = page.locator("tbody tr").filter(has_text="change a setting").first.inner_text()
    assert "fileReservedTime from 72 to 48" in text
    assert "admin" in text
    visitor.shoot("audit-entries")


def test_those_who_may_only_look_see_no_buttons(
    chromium: Browser, server: Running, tmp_path: Path
) -> None:
    with dashboards.dashboard(tmp_path, server.name_server, "--read-only") as running:
        context = chromium.new_context(locale="en-GB")
        visitor = Visitor(context.new_page(), running.url, tmp_path)
        visitor.log_in(running)
        visitor.open("/topic?name=Orders")
        buttons = visitor.page.locator("main button").all_inner_texts()
        assert visitor.page.get_by_text("read-only").count() == 1
        context.close()
    assert buttons == []
    visitor.check()


def test_a_cluster_that_is_away_is_an_error_and_no_empty_list(
    chromium: Browser, tmp_path: Path
) -> None:
    with dashboards.dashboard(tmp_path, "127.0.0.1:1", "--no-login") as running:
        context = chromium.new_context(locale="en-GB")
        page = context.new_page()
        for path in ("/", "/brokers", "/topics", "/groups", "/dlq", "/configuration"):
            page.goto(f"{running.url}/#{path}")
            page.get_by_text("It failed:").first.wait_for()
            assert page.get_by_text("127.0.0.1:1").count() > 0, path
            assert page.locator(".state.empty").filter(has_text="no topics").count() == 0
        context.close()
