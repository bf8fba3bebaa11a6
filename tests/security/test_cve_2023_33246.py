"""CVE-2023-33246: `updateBrokerConfig` took any setting, and one of them became a command line.

Apache's broker built the command of its filter server out of `rocketmqHome`, which anybody could
set over the wire. Here nothing is ever made a command of, and the wire sets what is in a typed list
alone: no path, no address, no command, no credential.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.settings import broker_rows
from gantrymq.store.settings import known_settings
from gantrymq.store.settings_kinds import Text
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.codes import RequestCode, ResponseCode
from support.attacks import Site, files, watched_for_programs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMAND = "-c $@|sh . echo touch pwned;"
ATTACKS = {
    "the published one": f"filterServerNums=1\nrocketmqHome={COMMAND}\n".encode(),
    "home alone": f"rocketmqHome={COMMAND}\n".encode(),
    "filter server alone": b"filterServerNums=1\n",
    "another place for messages": b"storePathRootDir=/tmp/elsewhere\n",
    "another log": b"storePathCommitLog=../../evil\n",
    "another file of settings": b"brokerConfigPath=/etc/cron.d/evil\nconfigStorePath=../../evil\n",
    "another name server": b"namesrvAddr=10.6.6.6:9876\n",
    "another etcd": b"failoverEtcd=10.6.6.6:2379\n",
    "another master": b"haMasterAddress=10.6.6.6:10912\n",
    "another certificate": b"tls.server.certPath=/tmp/evil.pem\n",
    "no access control": b"aclEnable=false\nauthenticationEnabled=false\n",
    "open to everybody": b"insecure=true\nbindAddress=0.0.0.0\n",
    "in company of a good one": f"fileReservedTime=1\nrocketmqHome={COMMAND}\n".encode(),
    "two names on one line": b"fileReservedTime=1\\nrocketmqHome=x\n",
    "a name that hides a line": b"fileReserved\\u000aTime=1\n",
    "nothing but a name": b"rocketmqHome\n",
    "not a text": b"\xff\xfe=\x00",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site")) as site:
        yield site


def settings(site: Site) -> dict[str, str]:
    return dict(SETTINGS.decode(site.ask(RequestCode.GET_BROKER_CONFIG).body))


@pytest.mark.parametrize("attack", ATTACKS)
def test_cve_2023_33246_is_refused_and_changes_nothing(site: Site, attack: str) -> None:
    before, around = settings(site), site.outside()
    with watched_for_programs() as started:
        answer = site.ask(RequestCode.UPDATE_BROKER_CONFIG, body=ATTACKS[attack])
        site.broker.jump(120)  # Apache's ran it by a timer, half a minute later
    assert started == []
    assert answer.code != ResponseCode.SUCCESS
    assert answer.remark
    assert settings(site) == before
    assert site.outside() == around
    assert not (site.data / "config" / "live.properties").exists()


def test_the_watch_sees_what_is_started() -> None:
    with watched_for_programs() as started:
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
    assert started


def test_cve_2023_33246_a_value_is_never_more_than_a_value(site: Site) -> None:
    before = settings(site)
    for value in ("1;touch pwned", "$(touch pwned)", "`touch pwned`", "1|sh", "../1", "1 2", ""):
        body = SETTINGS.encode({"fileReservedTime": value})
        answer = site.ask(RequestCode.UPDATE_BROKER_CONFIG, body=body)
        assert answer.code != ResponseCode.SUCCESS, value
    assert settings(site) == before


def test_cve_2023_33246_no_live_setting_is_a_text() -> None:
    """A path, an address or a command is text: none of what the wire may set is."""
    rows = [row for _, row in broker_rows()] + list(known_settings())
    live = [row for row in rows if row.live]
    assert len(live) > 20
    assert [row.name for row in live if isinstance(row.kind, Text)] == []


def test_cve_2023_33246_what_may_change_is_kept_inside_of_the_store(tmp_path: Path) -> None:
    with Site(tmp_path) as site:
        around = site.outside()
        answer = site.ask(RequestCode.UPDATE_BROKER_CONFIG, body=b"fileReservedTime=48\n")
        assert answer.code == ResponseCode.SUCCESS
        assert settings(site)["fileReservedTime"] == "48"
        assert site.outside() == around
        assert "config/live.properties" in files(site.data)
