"""The log as JSON: an object a line, whatever is logged."""

from __future__ import annotations

import io
import json
import logging
from typing import Any

import pytest

from gantrymq.node.logs import TEXT_FORMAT, JsonFormatter, TextFormatter, configure_logs


def logged(**record: Any) -> dict[str, Any]:  # noqa: ANN401
    made = logging.makeLogRecord({"name": "gantrymq.store", "levelname": "WARNING", **record})
    line = JsonFormatter().format(made)
    assert "\n" not in line
    found: dict[str, Any] = json.loads(line)
    return found


def test_a_line_has_time_level_logger_and_message() -> None:
    found = logged(msg="%d files of %s", args=(3, "log"), created=1_700_000_000.25)
    assert found == {
        "time": "2023-11-14T22:13:20.250Z",
        "level": "WARNING",
        "logger": "gantrymq.store",
        "message": "3 files of log",
        "template": "%d files of %s",
    }


def test_what_is_logged_beside_the_message_is_kept() -> None:
    found = logged(msg="a\nb", topic="T", offset=7, what=object)
    assert found["message"] == "a\nb"
    assert found["fields"] == {"topic": "T", "offset": 7, "what": "<class 'object'>"}


def test_an_exception_is_in_the_line() -> None:
    try:
        _ = 1 / 0
    except ZeroDivisionError as error:
        found = logged(msg="failed", exc_info=(type(error), error, error.__traceback__))
    assert "ZeroDivisionError: division by zero" in found["exception"]


@pytest.mark.parametrize("form", ["text", "json"])
def test_logs_are_written_as_chosen(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    said = io.StringIO()
    monkeypatch.setattr("sys.stderr", said)
    root.handlers[:] = []
    try:
        configure_logs("warning", "text")
        configure_logs("info", form)
        logging.getLogger("gantrymq.test").info("hello %s", "you")
        logging.getLogger("gantrymq.test").debug("not this")
    finally:
        root.handlers[:] = before
        root.setLevel(level)
    (line,) = said.getvalue().splitlines()
    if form == "json":
        assert json.loads(line)["message"] == "hello you"
    else:
        assert line.endswith(" INFO gantrymq.test: hello you")


def test_a_log_that_somebody_else_has_set_up_is_left_alone() -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    assert before, "pytest has its own"
    configure_logs("debug", "json")
    assert (root.handlers, root.level) == (before, level)


def test_a_peer_forges_no_line_and_rules_no_terminal() -> None:
    said = "x\n2026-01-01 00:00:00,000 INFO broker: all is well\x1b]0;owned\x07\u2028y"
    record = logging.makeLogRecord({"msg": "client %s left", "args": (said,), "levelname": "INFO"})
    line = TextFormatter(TEXT_FORMAT).format(record)
    assert len(line.splitlines()) == 1
    assert "\x1b" not in line
    assert r"x\x0a2026" in line
    error = ZeroDivisionError("on purpose")
    record.exc_info = type(error), error, None
    assert (
        TextFormatter(TEXT_FORMAT).format(record).splitlines()[1] == "ZeroDivisionError: on purpose"
    )


def test_a_name_that_is_no_text_is_logged_as_json() -> None:
    record = logging.makeLogRecord({"msg": "%s is gone", "args": ("a\udcff",), "levelname": "INFO"})
    assert json.loads(JsonFormatter().format(record))["message"] == r"a\udcff is gone"
