"""What `gantrymq bench` does: brings the load, shows how it goes, prints what was measured."""

from __future__ import annotations

import json
import os
import resource
import sys
from typing import TYPE_CHECKING, Final

from gantrymq.cli.arguments import FAILED, PROGRAM, SUCCESS
from gantrymq.client.load_run import run_latency, run_pull, run_send
from gantrymq.errors import GantryError

if TYPE_CHECKING:
    import argparse

    from gantrymq.client.load import Measured
    from gantrymq.client.load_run import Ran

ADDRESS: Final = "127.0.0.1:9876"
ADDRESS_VARIABLE: Final = "NAMESRV_ADDR"
BUSY_PERCENT: Final = 90
_LABELS: Final = {"p50": "p50", "p99": "p99", "p999": "p99.9", "max": "slowest"}


def run(chosen: argparse.Namespace) -> int:
    """Bring the load; return the exit status."""
    address = chosen.against or os.environ.get(ADDRESS_VARIABLE, "").split(";")[0] or ADDRESS
    line = _ProgressLine(chosen.command, chosen.seconds)
    before = _processor_s()
    try:
        ran = _load(chosen, address, line)
    except GantryError as error:
        line.end()
        problem = "; ".join(str(error).splitlines())
        sys.stderr.write(f"{PROGRAM}: {problem}\n")
        return FAILED
    line.end()
    seconds = max((measured.seconds for measured in ran.measured.values()), default=0.0)
    busy = round(100 * (_processor_s() - before) / seconds) if seconds else 0
    if chosen.json:
        sys.stdout.write(json.dumps(_as_json(chosen, ran, busy), indent=1) + "\n")
    else:
        sys.stdout.write(_as_text(chosen, ran, busy))
    return FAILED if any(measured.refused for measured in ran.measured.values()) else SUCCESS


def _load(chosen: argparse.Namespace, address: str, line: _ProgressLine) -> Ran:
    if chosen.command == "send":
        return run_send(
            address, line, topic=chosen.topic, queues=chosen.queues, seconds=chosen.seconds,
            connections=chosen.connections, window=chosen.in_flight, body_bytes=chosen.body,
            batch=chosen.batch,
        )  # fmt: skip
    if chosen.command == "pull":
        return run_pull(
            address, line, topic=chosen.topic, queues=chosen.queues, count=chosen.count,
            seconds=chosen.seconds,
        )  # fmt: skip
    return run_latency(
        address, line, topic=chosen.topic, body_bytes=chosen.body, seconds=chosen.seconds
    )


class _ProgressLine:
    """A line on a terminal, and nothing anywhere else."""

    def __init__(self, name: str, seconds: float) -> None:
        self._name = name
        self._seconds = seconds
        self._is_shown = sys.stderr.isatty()
        self._is_drawn = False

    def __call__(self, seconds: float, messages: int) -> None:
        """Draw the line anew."""
        if self._is_shown:
            rate = messages / seconds if seconds > 0 else 0.0
            sys.stderr.write(
                f"\r{self._name}: {min(seconds, self._seconds):.0f} of {self._seconds:g} s, "
                f"{messages:,} messages, {rate:,.0f}/s\x1b[K"
            )
            sys.stderr.flush()
            self._is_drawn = True

    def end(self) -> None:
        """Take the line off the terminal."""
        if self._is_drawn:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _processor_s() -> float:
    """Return the processor time that this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _settings(chosen: argparse.Namespace) -> dict[str, object]:
    names = ("topic", "queues", "connections", "in_flight", "batch", "body", "count", "seconds")
    return {name: getattr(chosen, name) for name in names if hasattr(chosen, name)}


def _figures(measured: Measured) -> dict[str, object]:
    return {
        "messages": measured.messages,
        "requests": measured.requests,
        "seconds": round(measured.seconds, 3),
        "messages_per_second": round(measured.per_second, 1),
        "bytes": measured.body_bytes,
        "latency_us": measured.percentiles_us(),
        "refused": measured.refused,
        "first_refusal": measured.first_refusal or None,
    }


def _as_json(chosen: argparse.Namespace, ran: Ran, busy: int) -> dict[str, object]:
    return {
        "command": chosen.command,
        "brokers": list(ran.brokers),
        "settings": _settings(chosen),
        "results": {name: _figures(measured) for name, measured in ran.measured.items()},
        "own_core_percent": busy,
    }


def _as_text(chosen: argparse.Namespace, ran: Ran, busy: int) -> str:
    settings = ", ".join(f"{name} {value}" for name, value in _settings(chosen).items())
    lines = [f"{chosen.command} against {', '.join(ran.brokers)}: {settings}"]
    for name, measured in ran.measured.items():
        lines += _rows(name, measured)
    lines.append(_row("this program's core", f"{busy} % busy"))
    if busy >= BUSY_PERCENT:
        lines.append("this program was the limit: the broker can do more; start several at once")
    return "\n".join(lines) + "\n"


def _rows(name: str, measured: Measured) -> list[str]:
    rows = [
        _row(name, f"{measured.messages:,} messages in {measured.seconds:.2f} s"),
        _row("rate", f"{measured.per_second:,.0f} messages/s"),
    ]
    if measured.body_bytes:
        rate = measured.body_bytes / max(measured.seconds, 1e-9) / 1e6
        rows.append(_row("bytes", f"{rate:,.1f} MB/s"))
    times = measured.percentiles_us()
    if times:
        shown = ", ".join(f"{_LABELS[part]} {_time(us)}" for part, us in times.items())
        rows.append(_row("latency", shown))
    if measured.refused:
        rows.append(
            _row("refused", f"{measured.refused:,}, the first with {measured.first_refusal}")
        )
    return rows


def _row(name: str, text: str) -> str:
    return f"  {name:<20} {text}"


def _time(microseconds: int) -> str:
    return f"{microseconds} us" if microseconds < 10_000 else f"{microseconds / 1000:.1f} ms"
