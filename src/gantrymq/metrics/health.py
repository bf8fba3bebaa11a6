"""Whether a process is well: alive is one that answers, ready is one that does its work.

/healthz    200 as long as the event loop runs
/readyz     200 if every check holds, 503 otherwise; the body says which do not, and why
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gantrymq.store.disk import DiskLevel, level

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gantrymq.metrics.parts import BrokerParts


class Check(msgspec.Struct, frozen=True):
    """One thing that has to be so."""

    name: str
    ok: bool
    detail: str = ""
    """What is wrong, or how it stands."""


class Health(NamedTuple):
    """An answer to those who ask."""

    ok: bool
    body: bytes


class _Told(msgspec.Struct, frozen=True):
    status: str
    checks: tuple[Check, ...]


def alive() -> Health:
    """Return the answer of a process that can answer."""
    return Health(ok=True, body=msgspec.json.encode({"status": "alive"}))


def readiness(checks: Iterable[Check]) -> Health:
    """Return what some checks come to."""
    found = tuple(checks)
    ok = all(check.ok for check in found)
    told = _Told("ready" if ok else "not ready", found)
    return Health(ok, msgspec.json.encode(told))


def broker_checks(parts: BrokerParts | None) -> list[Check]:
    """Return what has to hold of a broker; None is one that is not there yet, or is reopened."""
    if parts is None:
        return [Check("broker", ok=False, detail="it is starting, or changes its role")]
    checks = [_store(parts), _disk(parts), _name_servers(parts)]
    if parts.broker.settings.now.draining:
        checks.append(Check("draining", ok=False, detail="an operator drains it (brokerDraining)"))
    if parts.failover is not None:
        trouble = parts.failover.seat.trouble
        held = parts.failover.seat.holds_lease()
        checks.append(
            Check("etcd", held, trouble or ("" if held else "this member holds no lease"))
        )
    return checks


def _store(parts: BrokerParts) -> Check:
    """Look whether a master takes messages, or a slave follows its master."""
    broker = parts.broker
    if not broker.is_slave:
        reason = broker.store.writability.reason
        return Check("store", reason is None, reason or "open and writable")
    reason = broker.store.writability.replica_reason
    client = parts.replication.client
    if reason is None and (client is None or not client.is_connected):
        reason = "this slave has no connection to its master"
    return Check("store", reason is None, reason or "follows its master")


def _disk(parts: BrokerParts) -> Check:
    use = parts.broker.store.cleaner.disk_use
    if use is None:
        return Check("disk", ok=True, detail="not looked at yet")
    settings = parts.broker.store_settings.disk
    is_full = level(use, settings) is DiskLevel.FULL
    detail = f"{use.worst:.0%} used; nothing is written above {settings.full_percent} %"
    return Check("disk", not is_full, detail)


def _name_servers(parts: BrokerParts) -> Check:
    wanted, known = len(parts.name_servers), len(parts.known_to)
    ok = known > 0 or wanted == 0
    return Check("name_servers", ok, f"{known} of {wanted} know this broker")
