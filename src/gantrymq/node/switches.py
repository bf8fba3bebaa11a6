"""Switches of a settings file that ask for what there is not here.

Most names of Apache's files that mean nothing here tune something, and are passed over. These
promise something: that strangers are kept out, that another node takes over, that messages lie in
another store. Whoever set one relies on it, so a start is refused instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OFF: Final = frozenset({"", "false"})
_NO_USERS_OF_5: Final = (
    "there are no users and policies of 5.x here: leave it out, and use the accounts of 4.x, which "
    "clients of 5.x sign for as well (aclEnable=true, plain_acl.yml)"
)
_NO_CONTROLLER: Final = (
    "there is no controller here; leave it out, and give each broker its brokerRole and brokerId"
)
_NO_ACTING_MASTER: Final = (
    "no slave acts for its master here: what waits on a master that is down is delivered when it "
    "is back; leave it out"
)
_NO_SECOND_COPY: Final = (
    "no message waits for a second copy here before it can be read; leave it out, and use "
    "brokerRole=SYNC_MASTER where sends should wait for a slave"
)
_NO_ROCKSDB: Final = (
    "queues are kept in files here, not in RocksDB, and those of a RocksDB store cannot be read; "
    "leave it out, and let queues be built from the log"
)
_NO_PLUG_IN: Final = "there are no store plug-ins here; leave it out"
_NO_MORE_SLAVES: Final = (
    "a SYNC_MASTER waits for one slave here, whatever it has: say 2 or leave it out; where a "
    "message must be on more of them use automatic failover (failoverEtcd)"
)
_NO_FILTER_SERVERS: Final = "there are no filter servers here; leave it out, and filter by SQL92"
_NO_REJECTION: Final = "consumers that pull are not kept out here; leave it out"
_REFUSED: Final[Mapping[str, tuple[frozenset[str], str]]] = {
    "authenticationEnabled": (_OFF, _NO_USERS_OF_5),
    "authorizationEnabled": (_OFF, _NO_USERS_OF_5),
    "enableControllerMode": (_OFF, _NO_CONTROLLER),
    "enableSlaveActingMaster": (_OFF, _NO_ACTING_MASTER),
    "duplicationEnable": (_OFF, _NO_SECOND_COPY),
    "storeType": (frozenset({"", "default"}), _NO_ROCKSDB),
    "messageStorePlugIn": (frozenset({""}), _NO_PLUG_IN),
    "inSyncReplicas": (frozenset({"", "1", "2"}), _NO_MORE_SLAVES),
    "filterServerNums": (frozenset({"", "0"}), _NO_FILTER_SERVERS),
    "rejectPullConsumerEnable": (_OFF, _NO_REJECTION),
}
"""Name to the values that ask for nothing, and what to say about the others."""
_ADDRESS_SERVERS: Final = ("fetchNamesrvAddrByAddressServer", "fetchNameSrvAddrByDnsLookup")


def refused_switches(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for every switch of a broker that asks for what there is not."""
    for name, (harmless, why) in _REFUSED.items():
        text = properties.get(name, "").strip()
        if text.lower() not in harmless:
            yield f"{name} is {text!r}, and {why}"
    for name in _ADDRESS_SERVERS:
        text = properties.get(name, "").strip()
        if text.lower() not in _OFF and not properties.get("namesrvAddr", "").strip():
            yield (
                f"{name} is {text!r}, and nobody is asked where name servers are here: leave it "
                "out, and give their addresses (namesrvAddr, -n)"
            )


def refused_in_name_servers(properties: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for every switch of a name server that asks for what there is not."""
    text = properties.get("enableControllerInNamesrv", "").strip()
    if text.lower() not in _OFF:
        yield f"enableControllerInNamesrv is {text!r}, and {_NO_CONTROLLER}"
