"""The deployments of RocketMQ: which brokers there are, and what each of them is.

`conf/` has a file for each broker, made from this table; `gantrymq cluster demo` starts them all on
one machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    from collections.abc import Mapping

    Settings = Mapping[str, str]


def _broker(name: str, broker_id: int, role: str) -> dict[str, str]:
    return {
        "brokerClusterName": "DefaultCluster",
        "brokerName": name,
        "brokerId": str(broker_id),
        "brokerRole": role,
        "flushDiskType": "ASYNC_FLUSH",
        "deleteWhen": "04",
        "fileReservedTime": "48",
    }


def _pair(name: str, role: str) -> dict[str, Settings]:
    return {name: _broker(name, 0, role), f"{name}-s": _broker(name, 1, "SLAVE")}


def _member(number: int) -> dict[str, str]:
    return {
        **_broker("broker-a", 0, "SYNC_MASTER"),
        "failoverEtcd": "127.0.0.1:2379",
        "failoverId": str(number),
    }


LAYOUTS: Final[Mapping[str, Mapping[str, Settings]]] = {
    "1m": {"broker-a": _broker("broker-a", 0, "ASYNC_MASTER")},
    "2m-noslave": {name: _broker(name, 0, "ASYNC_MASTER") for name in ("broker-a", "broker-b")},
    "2m-2s-async": {**_pair("broker-a", "ASYNC_MASTER"), **_pair("broker-b", "ASYNC_MASTER")},
    "2m-2s-sync": {**_pair("broker-a", "SYNC_MASTER"), **_pair("broker-b", "SYNC_MASTER")},
    "failover": {f"broker-a-{number}": _member(number) for number in (1, 2, 3)},
}
"""Layout -> file -> settings."""

ABOUT: Final = {
    "1m": "one master: nothing is served while it is down",
    "2m-noslave": "several masters: while one is down its messages wait, the other takes sends",
    "2m-2s-async": "masters with asynchronous slaves: readers go on when a master is down; its "
    "last milliseconds may be missing if its disk is lost",
    "2m-2s-sync": "masters with synchronous double write: a message that is answered SEND_OK "
    "is on two brokers",
    "failover": "one group of three on etcd: a slave that is in sync becomes master by itself",
}


def layout(name: str) -> Mapping[str, Settings]:
    """Return the brokers of a layout.

    Raises:
        InvalidValue: there is no such layout.
    """
    found = LAYOUTS.get(name)
    if found is None:
        raise InvalidValue(f"there is no layout {name!r}: say one of {', '.join(LAYOUTS)}")
    return found
