"""Sessions, the throttle, the cache and the audit log: bounded in number and in time."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING

import pytest

from gantrymq.dashboard import sessions as sessions_of
from gantrymq.dashboard.accounts import Account
from gantrymq.dashboard.audit import (
    DONE,
    FAILED,
    REFUSALS_MAX,
    REFUSED,
    TRIED,
    AuditLog,
    NotWritten,
)
from gantrymq.dashboard.cache import ENTRIES_MAX, Cache
from gantrymq.dashboard.sessions import Sessions
from gantrymq.dashboard.throttle import KEYS_MAX, Throttle
from gantrymq.errors import GantryError
from gantrymq.model.roles import Role
from gantrymq.testing.clock import VirtualClock

if TYPE_CHECKING:
    from pathlib import Path

WHO = "anna", "admin", "10.0.0.1"


def account(name: str = "anna") -> Account:
    return Account(name, Role.ADMIN, "00", "00")


def test_a_session_ends_when_it_is_not_used_and_in_any_case() -> None:
    clock = VirtualClock()
    sessions = Sessions(clock)
    token, login = sessions.begin(account())
    assert sessions.find(token) is login
    assert sessions.find(token + "x") is None
    clock.jump(sessions_of.IDLE_S_MAX + 1)
    assert sessions.find(token) is None
    token, _login = sessions.begin(account())
    for _ in range(int(sessions_of.AGE_S_MAX / 1000) + 1):
        found = sessions.find(token)
        clock.jump(1000)
    assert found is not None
    assert sessions.find(token) is None
    assert len(sessions) == 0


def test_sessions_are_bounded_for_one_and_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    sessions = Sessions(VirtualClock())
    tokens = [sessions.begin(account())[0] for _ in range(20)]
    assert [sessions.find(each) is not None for each in tokens] == [False] * 4 + [True] * 16
    monkeypatch.setattr(sessions_of, "SESSIONS_MAX", 30)
    for number in range(100):
        sessions.begin(account(f"user{number}"))
    assert len(sessions) == 30


def test_a_session_that_is_ended_is_over() -> None:
    sessions = Sessions(VirtualClock())
    token, _login = sessions.begin(account())
    sessions.end(token)
    assert sessions.find(token) is None


def test_guessing_is_slow_for_an_address_and_for_a_name() -> None:
    clock = VirtualClock()
    throttle = Throttle(clock, tries_max=3, while_s=60.0)
    assert [throttle.wait_s("a", f"n{n}") for n in range(3)] == [0, 0, 0]
    assert throttle.wait_s("a", "n9") == 60.0
    assert throttle.wait_s("b", "n9") == 0
    clock.jump(60.0)
    assert throttle.wait_s("a") == 0
    throttle.wait_s("a")
    throttle.wait_s("a")
    assert throttle.wait_s("a") > 0
    throttle.forget("a")
    assert throttle.wait_s("a") == 0
    for number in range(KEYS_MAX + 10):
        throttle.wait_s(f"address {number}")
    assert len(throttle._tries) == KEYS_MAX


def test_the_audit_log_joins_an_attempt_with_what_came_of_it(tmp_path: Path) -> None:
    clock = VirtualClock()
    log = AuditLog(tmp_path, clock)
    log.add(WHO, "delete a topic", TRIED, "topic T", entry_id="1")
    log.add(WHO, "delete a topic", DONE, "topic T", "4 queues", entry_id="1")
    log.add(WHO, "move a group", TRIED, "group g", entry_id="2")
    told = [(each.action, each.outcome, each.detail) for each in log.newest_first()]
    assert told == [("move a group", "tried", ""), ("delete a topic", "done", "4 queues")]
    lines = (tmp_path / "audit.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["outcome"] for line in lines] == ["tried", "done", "tried"]
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o777 == 0o600


def test_the_audit_log_is_bounded_and_its_texts_are(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, VirtualClock(), bytes_max=4_000, files_max=3)
    for number in range(200):
        log.add(WHO, "send", FAILED, f"number {number}", "x" * 10_000)
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["audit.1.jsonl", "audit.2.jsonl", "audit.jsonl"]
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= 12_000
    found = [each.target for each in log.newest_first()]
    assert found[0] == "number 199"
    assert found == [f"number {199 - at}" for at in range(len(found))]


def test_what_cannot_be_written_down_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    log = AuditLog(tmp_path / "file", VirtualClock())
    with pytest.raises(NotWritten, match="nothing is changed without an entry"):
        log.add(WHO, "send", TRIED)


def test_half_an_entry_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log, write = AuditLog(tmp_path, VirtualClock()), os.write
    log.add(WHO, "send", DONE, "one")
    with monkeypatch.context() as patch:
        patch.setattr("os.write", lambda handle, line: write(handle, line[:20]))
        with pytest.raises(NotWritten, match="No space left"):
            log.add(WHO, "send", DONE, "two")
    log.add(WHO, "send", DONE, "three")
    assert [each.target for each in log.newest_first()] == ["three", "one"]


def test_refusals_push_out_nothing_and_are_bounded(tmp_path: Path) -> None:
    clock = VirtualClock()
    log = AuditLog(tmp_path, clock, bytes_max=2_000, files_max=2)
    log.add(WHO, "delete a topic", DONE, "T")
    for minute in range(3):
        clock.jump(61)
        for number in range(200):
            log.add((f"user{number}", "", "10.0.0.2"), "log in", REFUSED, str(minute))
            log.add(("ben", "viewer", f"10.0.1.{number}"), "delete a topic", REFUSED, str(minute))
    found = list(log.newest_first())
    assert (found[-1].outcome, found[-1].target) == (DONE, "T")
    assert {each.outcome for each in found[:-1]} == {REFUSED}
    assert "refused" not in (tmp_path / "audit.jsonl").read_text(encoding="utf-8")
    wide = AuditLog(tmp_path / "wide", clock)
    for number in range(200):
        wide.add((f"user{number}", "", "10.0.0.2"), "log in", REFUSED)
        wide.add(("ben", "viewer", f"10.0.1.{number}"), "delete a topic", REFUSED)
    assert len(list(wide.newest_first())) == 2 * REFUSALS_MAX


def test_a_moment_asks_once_and_a_failure_is_not_kept() -> None:
    clock, asked = VirtualClock(), []

    async def ask() -> int:
        asked.append(1)
        await asyncio.sleep(0)
        if len(asked) == 2:
            raise GantryError("gone")
        return len(asked)

    async def run() -> None:
        cache = Cache(clock, kept_s=3.0)
        assert await asyncio.gather(*(cache.get("k", ask) for _ in range(5))) == [1] * 5
        clock.jump(3.0)
        with pytest.raises(GantryError, match="gone"):
            await cache.get("k", ask)
        assert await cache.get("k", ask) == 3
        cache.forget()
        assert await cache.get("k", ask) == 4
        for number in range(ENTRIES_MAX * 2):
            await cache.get(str(number), ask)
        assert len(cache._entries) <= ENTRIES_MAX

    asyncio.run(run())
