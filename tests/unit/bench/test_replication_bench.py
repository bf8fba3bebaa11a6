"""`make bench-replication`, for a moment: its figures are there, and a slave has everything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bench.replication.run import main

if TYPE_CHECKING:
    import pytest

RATE = 5_000
LAG_MS_MAX = 2_000


def test_replication_is_measured(capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--seconds", "0.4", "--makers", "gantrymq", "--rate", str(RATE)]
    assert main(arguments) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["gantrymq_sync_master_per_second"] > 100
    assert found["gantrymq_sync_master_errors"] == 0, "a slave has every message"
    assert found["gantrymq_sync_to_async"] > 0
    assert found["slave_lag_load_per_second"] <= RATE * 1.2
    assert found["slave_lag_probes"] > 0
    assert found["slave_lag_p50_ms"] <= found["slave_lag_p99_ms"] < LAG_MS_MAX
