"""Who a broker is in the records and replies that it writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gantrymq.kernel import kernel
from gantrymq.store.put import POLICY_PROPERTIES

if TYPE_CHECKING:
    from gantrymq.kernel.lanes import SendLane


class Identity(NamedTuple):
    """Its address, its cluster and its region."""

    store_host: bytes
    cluster: bytes = b"DefaultCluster"
    region: bytes = b"DefaultRegion"
    trace_on: bool = True
    version: int = 407


def send_lane(identity: Identity, body_bytes_max: int) -> SendLane:
    """Return the lane that ordinary sends of this broker take."""
    return kernel.SendLane(
        store_host=identity.store_host,
        cluster=identity.cluster,
        region=identity.region,
        trace_on=identity.trace_on,
        version=identity.version,
        body_bytes_max=body_bytes_max,
        policy_names=POLICY_PROPERTIES,
    )
