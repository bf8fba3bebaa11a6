from __future__ import annotations

import pytest

from gantrymq.errors import InvalidValue
from gantrymq.limits import NAMESRV_ADVERTISED_MAX
from gantrymq.model.route import BrokerData
from gantrymq.namesrv.reach import PLAIN_VIEW, Reach, check_address, listener_host


@pytest.fixture
def reach() -> Reach:
    return Reach()


def told(reach: Reach, address: str, listener: str) -> str:
    return reach.address(address, reach.view_of(listener))


def test_an_address_that_somebody_chose_is_told_as_it_is(reach: Reach) -> None:
    reach.follow_listener("192.168.1.5:10911")
    for listener in ("127.0.0.1:9876", "192.168.1.5:9876", "[::1]:9876"):
        assert told(reach, "203.0.113.7:10911", listener) == "203.0.113.7:10911"


def test_without_rules_all_clients_share_one_view(reach: Reach) -> None:
    assert reach.view_of("127.0.0.1:9876") == reach.view_of("10.0.0.1:9876") == PLAIN_VIEW


@pytest.mark.parametrize(
    ("listener", "address"),
    [
        ("127.0.0.1:9876", "127.0.0.1:10911"),
        ("192.168.1.5:9876", "192.168.1.5:10911"),
        ("10.8.0.3:9876", "10.8.0.3:10911"),
        ("[fd00::2]:9876", "[fd00::2]:10911"),
        ("fd00::2:9876", "[fd00::2]:10911"),
        ("[::ffff:10.8.0.3]:9876", "10.8.0.3:10911"),
        ("[fe80::1%eth0]:9876", "192.168.1.5:10911"),
        ("somewhere", "192.168.1.5:10911"),
        ("0.0.0.0:9876", "192.168.1.5:10911"),
    ],
)
def test_a_broker_on_all_addresses_follows_the_listener(
    reach: Reach, listener: str, address: str
) -> None:
    reach.follow_listener("192.168.1.5:10911")
    assert told(reach, "192.168.1.5:10911", listener) == address


def test_addresses_for_each_listener(reach: Reach) -> None:
    reach.advertise("10.0.0.1:10911", {"127.0.0.1": "127.0.0.1:30911"})
    assert told(reach, "10.0.0.1:10911", "127.0.0.1:9876") == "127.0.0.1:30911"
    assert told(reach, "10.0.0.1:10911", "10.0.0.1:9876") == "10.0.0.1:10911"

    reach.advertise("10.0.0.1:10911", lambda host: None if host == "::1" else f"{host}:1")
    assert told(reach, "10.0.0.1:10911", "127.0.0.1:9876") == "127.0.0.1:1"
    assert told(reach, "10.0.0.1:10911", "[::1]:9876") == "10.0.0.1:10911"

    reach.withdraw("10.0.0.1:10911")
    reach.withdraw("never:1")
    assert told(reach, "10.0.0.1:10911", "127.0.0.1:9876") == "10.0.0.1:10911"


def test_a_wildcard_from_elsewhere_is_where_it_came_from(reach: Reach) -> None:
    assert reach.known_as("0.0.0.0:10911", "172.17.0.3:51000") == "172.17.0.3:10911"
    assert reach.known_as("[::]:10911", "[fd00::3]:51000") == "[fd00::3]:10911"
    assert reach.known_as("10.1.1.1:10911", "172.17.0.3:51000") == "10.1.1.1:10911"
    assert reach.view_of("127.0.0.1:9876") == PLAIN_VIEW


def test_a_wildcard_from_this_machine_follows_the_listener(reach: Reach) -> None:
    assert reach.known_as("0.0.0.0:10911", "127.0.0.1:51000") == "0.0.0.0:10911"
    assert told(reach, "0.0.0.0:10911", "10.8.0.3:9876") == "10.8.0.3:10911"
    assert told(reach, "10.1.1.1:10911", "10.8.0.3:9876") == "10.1.1.1:10911"


def test_a_group_is_told_whole(reach: Reach) -> None:
    reach.follow_listener("10.0.0.1:10911")
    data = BrokerData("c", "b", {0: "10.0.0.1:10911", 1: "10.0.0.2:10911"}, "zone", True)
    assert reach.broker(data, "127.0.0.1") == BrokerData(
        "c", "b", {0: "127.0.0.1:10911", 1: "10.0.0.2:10911"}, "zone", True
    )
    assert reach.broker(data, PLAIN_VIEW) is data


def test_there_is_a_bound(reach: Reach) -> None:
    for number in range(NAMESRV_ADVERTISED_MAX):
        reach.follow_listener(f"10.0.0.1:{number}")
    reach.follow_listener("10.0.0.1:0")
    with pytest.raises(InvalidValue, match="1024 addresses"):
        reach.follow_listener("10.0.0.1:60000")


@pytest.mark.parametrize(
    "address",
    ["10.0.0.1:10911", "broker-1.example.org:1", "[fd00::2]:65535", "fd00:0:0:0:0:0:0:2:10911"],
)
def test_good_addresses(address: str) -> None:
    assert check_address("it", address) == address


@pytest.mark.parametrize(
    "address",
    [
        "",
        "10.0.0.1",
        ":10911",
        "10.0.0.1:",
        "10.0.0.1:0",
        "10.0.0.1:65536",
        "10.0.0.1:x",
        "10.0.0.1:-1",
        "a b:1",
        'a":1',
        "a,b:1",
        "{a:1",
        "ä:1",
        "a" * 300 + ":1",
        "10.0.0.1:\u0661",
    ],
)
def test_bad_addresses(address: str) -> None:
    with pytest.raises(InvalidValue, match="the address"):
        check_address("the address", address)


def test_a_host_that_others_cannot_use() -> None:
    assert listener_host("[fe80::1%eth0]:1") == ""
    assert listener_host("localhost:1") == ""
    assert listener_host("[::]:1") == ""
