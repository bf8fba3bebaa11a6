"""Times on the command line: what they mean; of anything else comes a sentence."""

from __future__ import annotations

import pytest

from gantrymq.cli.main import main
from gantrymq.cli.moments import time_ms
from gantrymq.errors import InvalidValue
from gantrymq.testing.clock import START_MS, VirtualClock


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("now", START_MS),
        ("0", 0),
        ("-5", -5),
        ("1700000000123", 1_700_000_000_123),
        ("30m", START_MS - 1_800_000),
        ("1.5 h ago", START_MS - 5_400_000),
        ("2023-11-14T22:13:20+00:00", START_MS),
        ("1970-01-02T00:00:00Z", 86_400_000),
    ],
)
def test_what_it_means(text: str, meaning: int) -> None:
    assert time_ms(text, VirtualClock()) == meaning


@pytest.mark.parametrize(
    "text",
    ["", "--1", "1" * 5000, "9" * 400 + "d", "9999-12-31T23:59:59-23:59", "\u0663", "x"],
    ids=lambda text: text[:12],
)
def test_what_is_no_time_is_said(text: str) -> None:
    with pytest.raises(InvalidValue, match="is no time") as refused:
        time_ms(text, VirtualClock())
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "0", "x"])
def test_an_interval_that_never_ends_is_refused(
    seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["admin", "clusterList", "--interval", seconds, "-n", "127.0.0.1:1"])
    assert ended.value.code == 2
    assert "give seconds" in capsys.readouterr().err
