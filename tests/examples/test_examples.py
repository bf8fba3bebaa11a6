"""Every example is run as a user runs it, against a broker, and prints what it should."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gantrymq.testing import ThreadedBroker

EXAMPLES = Path(__file__).parents[2] / "examples"
PRINTED = {
    "send": "SEND_OK Greetings\nSEND_OK Greetings\n",
    "batch": "1000 messages in 3 requests\n",
    "ordered": "A ordered paid shipped\nB ordered paid shipped\nC ordered paid shipped\n",
    "delayed": "now\nin a second\nin three seconds\n",
    "transaction": "A COMMIT\nB ROLLBACK\nC COMMIT\nshipped: A C\n",
    "request_reply": "42\n",
    "retry_and_dead_letters": (
        "never: attempt 1\nnever: attempt 2\nsecond time: attempt 1\nsecond time: attempt 2\n"
        "dead: never\n"
    ),
    "broadcasting": "anna heard: it rains\nben heard: it rains\n",
    "pull_offsets": "10 entries\n10 entries\n10 committed\n",
    "sql_filter": "red for 5\nred for 7\n",
    "celery_tasks": "42\n",
    "faststream_app": "order 7: 119.00\n",
    "tracing": "place an order\nprocess Traced\nsend Traced\n1 trace\n",
}


@pytest.mark.parametrize("name", PRINTED)
def test_example(name: str, tmp_path: Path) -> None:
    with ThreadedBroker() as broker:
        done = subprocess.run(
            [sys.executable, "-W", "error", str(EXAMPLES / f"{name}.py"), broker.namesrv],
            cwd=tmp_path,
            env={**os.environ, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    assert done.stdout == PRINTED[name], done.stderr


def test_no_example_is_left_out() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PRINTED)
