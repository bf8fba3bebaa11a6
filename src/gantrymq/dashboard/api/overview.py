"""The first page: what there is, how much goes through it, and what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.admin import checkup
from gantrymq.admin.groups import groups_in
from gantrymq.dashboard.api.names import kind_of, known_topics
from gantrymq.dashboard.calls import Endpoint
from gantrymq.model.roles import Role

if TYPE_CHECKING:
    from gantrymq.dashboard.calls import Call
    from gantrymq.dashboard.sampling import Sample


async def summary(call: Call) -> object:
    """Return how many of what there are."""
    known = await known_topics(call)
    info = known.info
    kinds: dict[str, int] = {}
    for name in known.names:
        kind = kind_of(name, known.reserved)
        kinds[kind] = kinds.get(kind, 0) + 1
    without = [name for name, each in info.broker_addr_table.items() if each.master is None]
    return {
        "clusters": sorted(info.cluster_addr_table),
        "brokers": sum(len(each.addresses) for each in info.broker_addr_table.values()),
        "masters": len(info.broker_addr_table) - len(without),
        "withoutMaster": sorted(without),
        "topics": kinds.get("normal", 0),
        "groups": len(groups_in(known.names)),
        "deadLetterTopics": kinds.get("dead letters", 0),
        "nameServers": list(call.session.name_servers),
    }


def _data(sample: Sample) -> dict[str, object]:
    return {
        "timeMs": sample.time_ms,
        "brokers": {
            name: {
                "in": each.in_per_s, "out": each.out_per_s, "p99": each.put_p99_ms,
                "p999": each.put_p999_ms, "answer": each.answer_ms,
            }
            for name, each in sample.brokers.items()
        },
        "problems": sample.problems,
    }  # fmt: skip


async def samples(call: Call) -> object:
    """Return the figures after a time, oldest first."""
    found = call.parts.sampler.since(call.number("after", 0))
    return {"samples": [_data(each) for each in found], "nowMs": call.parts.clock.now_ms()}


async def findings(call: Call) -> object:
    """Walk from the name servers to the brokers; say what is well and what is not."""
    found = await call.parts.cache.get("findings", lambda: checkup.examine(call.session))
    return {"findings": [each._asdict() for each in found]}


ENDPOINTS: Final = (
    Endpoint("GET", "/api/summary", Role.VIEWER, summary),
    Endpoint("GET", "/api/samples", Role.VIEWER, samples),
    Endpoint("GET", "/api/findings", Role.VIEWER, findings),
)
