"""Settings, addresses, rare log lines, the choice of the loop."""

from __future__ import annotations

import asyncio
import logging

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.model.message import Host
from gantrymq.testing.clock import VirtualClock
from gantrymq.transport import loop
from gantrymq.transport.addresses import NOWHERE, socket_host, split_address
from gantrymq.transport.rare_log import SUBJECTS_MAX, RareLog
from gantrymq.transport.settings import TransportSettings


def test_settings_that_cannot_be_are_named_all_at_once() -> None:
    with pytest.raises(InvalidValue) as caught:
        TransportSettings(idle_s=0, unanswered_max=-1, write_low_bytes=2**30)
    for name in ("idle_s", "unanswered_max", "write_low_bytes"):
        assert name in str(caught.value)


@pytest.mark.parametrize(
    ("name", "host"),
    [
        (("1.2.3.4", 5), Host("1.2.3.4", 5)),
        (("::ffff:1.2.3.4", 5, 0, 0), Host("1.2.3.4", 5)),
        (("fe80::1%eth0", 5, 0, 2), Host("fe80::1", 5)),
        ("", NOWHERE),
        (None, NOWHERE),
    ],
)
def test_socket_addresses(name: object, host: Host) -> None:
    assert socket_host(name) == host


def test_addresses_are_split() -> None:
    assert split_address("broker-a:10911") == ("broker-a", 10911)
    assert split_address("[::1]:10911") == ("::1", 10911)


def test_a_subject_is_logged_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = VirtualClock()
    rare = RareLog(logging.getLogger("rare"), clock)
    for _ in range(100):
        rare.warning("a", "about a")
    rare.warning("b", "about b")
    clock.jump(60)
    rare.warning("a", "again")
    messages = [record.message for record in caplog.records]
    assert messages[0] == "about a"
    assert messages[1].startswith("about b (and 99 ")
    assert messages[2] == "again"


def test_subjects_are_forgotten_in_the_end(caplog: pytest.LogCaptureFixture) -> None:
    rare = RareLog(logging.getLogger("rare"), VirtualClock())
    for number in range(SUBJECTS_MAX + 1):
        rare.warning(f"{number}", "x")
    assert len(rare._said) == SUBJECTS_MAX
    assert len(caplog.records) == SUBJECTS_MAX + 1


def test_a_program_runs_with_and_without_uvloop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def name() -> str:
        return type(asyncio.get_running_loop()).__module__.partition(".")[0]

    expected = "asyncio" if loop.uvloop_factory() is None else "uvloop"
    assert loop.run(name()) == expected

    def missing(module: str) -> None:
        raise ImportError(module)

    monkeypatch.setattr(loop, "import_module", missing)
    assert loop.run(name()) == "asyncio"
