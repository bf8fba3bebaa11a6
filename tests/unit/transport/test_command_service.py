"""Exceptions become answers, in one place."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

import pytest

from gantrymq.errors import ContentError, InvalidValue
from gantrymq.limits import ERROR_TEXT_CHARACTERS_MAX
from gantrymq.wire.command import BINARY_HEADER, Command
from gantrymq.wire.response_errors import SystemBusy, UnknownResponse
from gantrymq.wire.settling import answer_error, settle

if TYPE_CHECKING:
    from support.transport import Run

REQUEST = Command.request(10, 77, serialize_type=BINARY_HEADER)
ONEWAY = Command.request(10, 78, oneway=True)


@pytest.mark.parametrize(
    ("error", "code", "remark", "level"),
    [
        (SystemBusy("[OVERLOAD]"), 2, "[OVERLOAD]", None),
        (UnknownResponse(4711), 4711, "response code 4711", None),
        (ContentError("body.topic", "is missing"), 1, "body.topic: is missing", None),
        (InvalidValue("too large"), 1, "too large", logging.WARNING),
        (KeyError("topic"), 1, "KeyError: 'topic'", logging.ERROR),
    ],
)
def test_what_is_answered_and_what_is_logged(
    error: Exception, code: int, remark: str, level: int | None, caplog: pytest.LogCaptureFixture
) -> None:
    answer = answer_error(REQUEST, error)
    assert (answer.code, answer.remark) == (code, remark)
    assert answer.is_response
    assert (answer.opaque, answer.serialize_type) == (77, BINARY_HEADER)
    assert [record.levelno for record in caplog.records] == ([] if level is None else [level])


def test_a_remark_has_a_bound(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.CRITICAL):
        answer = answer_error(REQUEST, ValueError("x" * 10_000))
    assert answer.remark is not None
    assert len(answer.remark) == ERROR_TEXT_CHARACTERS_MAX


def test_promises_are_settled(run: Run) -> None:
    async def fail() -> Command:
        raise SystemBusy("later")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        good = REQUEST.response(body=b"x")
        assert settle(REQUEST, good) is good
        assert settle(ONEWAY, good) is None
        done, open_, failing, cancelled = (loop.create_future() for _ in range(4))
        done.set_result(good)
        assert settle(REQUEST, done) is good
        promises = [settle(REQUEST, one) for one in (open_, failing, cancelled)]
        promises += [settle(ONEWAY, open_), settle(REQUEST, fail()), settle(ONEWAY, fail())]
        open_.set_result(good)
        failing.set_exception(SystemBusy("failed"))
        cancelled.cancel()
        answers = await asyncio.gather(*promises)  # type: ignore[arg-type]
        given_up = "the request was given up: the server is stopping"
        assert answers == [
            good,
            REQUEST.response(2, remark="failed"),
            REQUEST.response(1, remark=given_up),
            None,
            REQUEST.response(2, remark="later"),
            None,
        ]

    run(main())
