"""SYNC_MASTER and ASYNC_MASTER with one slave, ours beside Apache's; the lag of our slave.

python -m bench.replication               both makes, 10 s each; figures as JSON
python -m bench.replication --seconds 1 --makers gantrymq
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from bench.compare.brokers import NotMeasured, problem
from bench.compare.load import Generator, compile_generator
from bench.replication.lag import slave_lag_ms
from bench.replication.pairs import APACHE, OURS, pair

if TYPE_CHECKING:
    from collections.abc import Sequence

ROLES: Final = ("ASYNC_MASTER", "SYNC_MASTER")
CONNECTIONS: Final = 8
WINDOW: Final = 64
BODY_BYTES: Final = 128
WARM_UP: Final = {OURS: 0.5, APACHE: 3.0}
"""Times as long as what is measured: a JVM is slow until it has compiled what it runs."""
P99: Final = 0.99


def measured(makers: Sequence[str], seconds: float, rate: int, work: Path) -> dict[str, object]:
    """Return all figures by name."""
    program = compile_generator(work)
    found: dict[str, object] = {}
    for maker in makers:
        why = problem(maker)
        if why is not None:
            found[f"{maker}_left_out"] = why
            continue
        for role in ROLES:
            with pair(maker, work / f"{maker}-{role}", role) as both:
                generator = Generator(program, both.master.port)
                warm_up_s = max(seconds * WARM_UP[maker], 0.5)
                generator.send("Warm", CONNECTIONS, WINDOW, BODY_BYTES, warm_up_s)
                load = generator.send("Single", CONNECTIONS, WINDOW, BODY_BYTES, seconds)
                name = f"{maker}_{role.lower()}"
                found |= {
                    f"{name}_per_second": load.per_second,
                    f"{name}_p99_ms": load.p99_us / 1000,
                    f"{name}_errors": load.errors,
                }
        sync, alone = (found[f"{maker}_{role.lower()}_per_second"] for role in reversed(ROLES))
        found[f"{maker}_sync_to_async"] = round(float(str(sync)) / float(str(alone)), 3)
    if OURS in makers:
        with pair(OURS, work / "lag", "ASYNC_MASTER") as both:
            lags, taken = slave_lag_ms(both, program, rate, seconds)
            found |= {
                "slave_lag_load_per_second": taken,
                "slave_lag_p50_ms": round(lags[len(lags) // 2], 2),
                "slave_lag_p99_ms": round(lags[int(len(lags) * P99)], 2),
                "slave_lag_probes": len(lags),
            }
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what the command line says; print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=50_000, help="messages a second for the lag")
    parser.add_argument("--makers", nargs="+", choices=[OURS, APACHE], default=[OURS, APACHE])
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="gantrymq-replication-") as folder:
        try:
            found = measured(chosen.makers, chosen.seconds, chosen.rate, Path(folder))
        except NotMeasured as error:
            sys.stderr.write(f"bench.replication: {error}\n")
            return 1
    sys.stdout.write(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
