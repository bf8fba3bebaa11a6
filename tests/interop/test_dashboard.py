"""The dashboard over Apache RocketMQ's own servers: every list, and what an operator changes."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from support import apache, dashboards

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.tool("java"), pytest.mark.tool("mvn")]

WAIT_S = 60


class Api:
    """Asks a dashboard without a login."""

    def __init__(self, url: str) -> None:
        self._url = url

    def get(self, path: str, **params: str) -> Any:  # noqa: ANN401  (whatever JSON says)
        """Ask; an error is raised."""
        query = urllib.parse.urlencode(params)
        request = urllib.request.Request(f"{self._url}/api/{path}?{query}")  # noqa: S310
        return self._ask(request)

    def change(self, method: str, path: str, **body: object) -> Any:  # noqa: ANN401
        """Change something."""
        headers = {"content-type": "application/json", "x-csrf-token": "none"}
        request = urllib.request.Request(  # noqa: S310
            f"{self._url}/api/{path}", json.dumps(body).encode(), headers, method=method
        )
        return self._ask(request)

    def _ask(self, request: urllib.request.Request) -> Any:  # noqa: ANN401
        with urllib.request.urlopen(request, timeout=WAIT_S) as answer:  # noqa: S310
            return json.loads(answer.read())

    def until(self, path: str, count: int, **params: str) -> Any:  # noqa: ANN401
        """Ask until a list has so many rows without an error.

        In its first second Apache's broker fails at its own figures: none has been taken yet.
        """
        deadline = time.monotonic() + WAIT_S
        while True:
            told = self.get(path, **params)
            good = [row for row in told["rows"] if not row.get("error")]
            if len(good) >= count or time.monotonic() > deadline:
                return told
            time.sleep(0.3)


def test_the_dashboard_of_apaches_servers(apache_version: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        names = stack.enter_context(apache.name_server(apache_version, tmp_path / "namesrv"))
        settings = {
            "namesrvAddr": names.address, "storePathRootDir": str(tmp_path / "store"),
            "mappedFileSizeCommitLog": str(16 << 20), "maxHashSlotNum": "10000",
            "maxIndexNum": "40000",
        }  # fmt: skip
        broker = stack.enter_context(apache.broker(apache_version, tmp_path / "broker", settings))
        running = stack.enter_context(dashboards.dashboard(tmp_path, names.address, "--no-login"))
        api = Api(running.url)
        (row,) = api.until("brokers", 1)["rows"]
        assert (row["address"], row["error"]) == (broker.address, "")
        assert row["version"] == f"V{apache_version.replace('.', '_')}"

        made = api.change("POST", "topic", topic="Orders", readQueues=2, writeQueues=2)
        assert made["problems"] == []
        assert api.change("POST", "group", group="billing")["problems"] == []
        sent = api.change("POST", "topic/send", topic="Orders", body="hello", keys="k1", tag="t")
        assert sent["status"] == "SEND_OK"
        (found,) = api.until("messages", 1, topic="Orders", key="k1")["rows"]
        assert (found["id"], found["preview"]) == (sent["id"], "hello")
        for message_id in (found["id"], found["offsetId"]):
            assert api.get("message", id=message_id, topic="Orders")["tag"] == "t"
        assert api.get("message/life", id=found["offsetId"], topic="Orders")["problems"] == []
        again = api.change("POST", "message/resend", id=found["offsetId"], topic="Orders")
        assert again["status"] == "SEND_OK"

        (topic,) = [each for each in api.get("topics")["rows"] if each["name"] == "Orders"]
        assert (topic["messages"], topic["readQueues"], topic["perm"]) == (2, 2, "RW-")
        assert len(api.get("topic", name="Orders")["queues"]) == 2
        assert api.get("producers")["problems"] == []
        moves = api.get("group/reset", group="billing", topic="Orders", to="latest")["moves"]
        assert sum(each["after"] for each in moves) == 2
        moved = api.change("POST", "group/reset", group="billing", topic="Orders", to="latest")
        assert moved["undo"]
        names_of = [each["name"] for each in api.get("groups")["rows"]]
        assert "billing" in names_of
        assert api.get("group", name="billing")["settings"][0]["retries"] == 16

        changed = api.change(
            "POST", "configuration", broker=row["name"], name="fileReservedTime", value="48"
        )
        assert changed["after"] == "48"
        for path in ("summary", "samples", "findings", "dlq", "dlq/jobs", "configuration",
                     "configuration/name-servers", "pipelines", "audit"):  # fmt: skip
            assert api.get(path), path
        plan = api.get("topic/deletion", name="Orders")
        assert plan["losses"][0]["detail"] == "2 queues, 2 messages"
        api.change("DELETE", "topic", topic="Orders")
        time.sleep(3.2)  # what was kept of the list is forgotten
        assert "Orders" not in [each["name"] for each in api.get("topics")["rows"]]
