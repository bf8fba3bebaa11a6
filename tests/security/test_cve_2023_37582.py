"""CVE-2023-37582: `updateNamesrvConfig` wrote the settings to a file that the request had named.

With `configStorePath` in the request, whoever reached a name server wrote any text to any file.
Here a request can set what is in a typed list, where there is no path, and what it sets is kept in
the one file that the name server was started with.

CVE-2023-33246's repair left this one open; the unpublished neighbour of both (a null key in the
key-value table kept Apache's brokers from starting) is tried here as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.codes import RequestCode, ResponseCode
from support.attacks import EVIL_NAMES, Site

if TYPE_CHECKING:
    from collections.abc import Iterator

ATTACKS = {
    "the published one": b"configStorePath=/tmp/pwned\nproductEnvName=x\\n* * * * * sh\n",
    "a way up": b"configStorePath=../../../evil\n",
    "the other file": b"kvConfigPath=../../../evil\n",
    "home": b"rocketmqHome=/tmp\n",
    "another address": b"bindAddress=0.0.0.0\nlistenPort=1\n",
    "open to everybody": b"insecure=true\nbindAddress=0.0.0.0\n",
    "an environment of its own": b"productEnvName=evil\nclusterTest=true\n",
    "in company of a good one": b"orderMessageEnable=true\nconfigStorePath=/tmp/pwned\n",
    "the good one last": b"configStorePath=/tmp/pwned\norderMessageEnable=true\n",
    "written otherwise": b"config\\u0053torePath=/tmp/pwned\n",
    "with a blank": b" configStorePath /tmp/pwned\n",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with Site(tmp_path_factory.mktemp("site")) as site:
        yield site


def settings(site: Site) -> dict[str, str]:
    return dict(SETTINGS.decode(site.ask_namesrv(RequestCode.GET_NAMESRV_CONFIG).body))


@pytest.mark.parametrize("attack", ATTACKS)
def test_cve_2023_37582_is_refused_and_writes_nothing(site: Site, attack: str) -> None:
    before, around = settings(site), site.outside()
    answer = site.ask_namesrv(RequestCode.UPDATE_NAMESRV_CONFIG, body=ATTACKS[attack])
    assert answer.code == ResponseCode.NO_PERMISSION
    assert settings(site) == before
    assert site.outside() == around
    assert not (site.data / "namesrv" / "namesrv.properties").exists()


def test_cve_2023_37582_what_may_change_goes_to_the_file_it_was_started_with(site: Site) -> None:
    around = site.outside()
    answer = site.ask_namesrv(RequestCode.UPDATE_NAMESRV_CONFIG, body=b"enableTopicList=false\n")
    assert answer.code == ResponseCode.SUCCESS
    assert site.outside() == around
    kept = SETTINGS.decode((site.data / "namesrv" / "namesrv.properties").read_bytes())
    assert kept["enableTopicList"] == "false"
    assert not [name for name in kept if "path" in name.lower()]


def test_cve_2023_37582_keys_and_values_are_not_paths_either(site: Site) -> None:
    around = site.outside()
    for name in EVIL_NAMES:
        fields = {"namespace": name, "key": name, "value": "* * * * * sh"}
        site.ask_namesrv(RequestCode.PUT_KV_CONFIG, fields)
        site.ask_namesrv(RequestCode.DELETE_KV_CONFIG, fields)
    assert site.outside() == around


def test_a_key_that_is_missing_does_not_keep_brokers_from_starting(site: Site) -> None:
    for fields in ({"namespace": "ORDER_TOPIC_CONFIG", "value": "b:8"}, {"key": "k", "value": "v"}):
        answer = site.ask_namesrv(RequestCode.PUT_KV_CONFIG, fields)
        assert answer.code == ResponseCode.SYSTEM_ERROR
    site.broker.stop()
    site.broker.start()
    assert site.ask(RequestCode.GET_BROKER_CONFIG).code == ResponseCode.SUCCESS
