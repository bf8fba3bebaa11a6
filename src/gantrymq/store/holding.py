"""What a reply waits for: the disk, a slave, both or nothing, as flushDiskType and brokerRole say.

Owned by the task that owns the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.store.gate import NOT_NEEDED
from gantrymq.store.settings import BrokerRole, FlushDiskType
from gantrymq.store.status import PutStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.store.gate import DurabilityGate
    from gantrymq.store.put_timing import PutTiming
    from gantrymq.store.replicas import Replicas
    from gantrymq.store.settings import StoreSettings


def waits_for_disk(settings: StoreSettings) -> bool:
    """Tell whether a put is forced before it is answered."""
    return settings.flush.disk_type is FlushDiskType.SYNC_FLUSH


def waits_for_slave(settings: StoreSettings) -> bool:
    """Tell whether a put is copied before it is answered."""
    return settings.replication.role is BrokerRole.SYNC_MASTER


def waits(settings: StoreSettings) -> bool:
    """Tell whether a put is answered later than it is appended."""
    return waits_for_disk(settings) or waits_for_slave(settings)


class Holding:
    """Takes replies to the gate."""

    def __init__(
        self,
        settings: StoreSettings,
        gate: DurabilityGate,
        clock: Clock,
        timing: PutTiming,
        replicas: Callable[[], Replicas],
    ) -> None:
        self._disk = waits_for_disk(settings)
        self._slave = waits_for_slave(settings)
        self._gate = gate
        self._clock = clock
        self._timing = timing
        self._replicas = replicas

    def change_role(self, settings: StoreSettings) -> None:
        """Wait for slaves from now on, or no longer."""
        self._slave = waits_for_slave(settings)

    @property
    def waits_for_nothing(self) -> bool:
        """Tell whether `hold` lets everybody out at once, all being well."""
        return not (self._disk or self._slave) and self._gate.failure is None

    def hold(self, end: int, let_out: Callable[[PutStatus], None], *, waits: bool) -> None:
        """Call `let_out` when the log is safe up to `end`; see `MessageStore.hold`."""
        replica_offset, outcome = NOT_NEEDED, PutStatus.PUT_OK
        if self._slave and waits:
            if self._replicas().is_available(end):
                replica_offset = end
            else:
                outcome = PutStatus.SLAVE_NOT_AVAILABLE
        self._gate.hold(
            self._timing.held(let_out),
            self._clock.monotonic(),
            flush_offset=end if self._disk and waits else NOT_NEEDED,
            replica_offset=replica_offset,
            outcome=outcome,
        )
