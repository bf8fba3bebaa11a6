"""The texts by which a broker knows a popped message."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from gantrymq.client.consuming.pop_handles import (
    PopHandle,
    handle_of,
    parse_handle,
    start_offsets,
)
from gantrymq.client.consuming.popping import pop_delay_ms
from gantrymq.errors import ContentError
from gantrymq.wire.headers.pop import PopMessageResponse

if TYPE_CHECKING:
    from gantrymq.wire.record import MessageRecord

ANSWER = PopMessageResponse(pop_time=1000, invisible_time=60000, revive_qid=3, rest_num=0)
HANDLE = PopHandle(5, 1000, 60000, 3, "0", "broker-a", 2, 7)


class Record:
    """What a handle is made of."""

    def __init__(self, topic: str, **properties: str) -> None:
        self.topic, self.queue_id, self.queue_offset = topic, 2, 7
        self.properties = properties


def handle_for(record: Record) -> PopHandle:
    """Return the handle of a message."""
    starts = start_offsets("0 2 5;2 2 6;1 2 4")
    return handle_of(cast("MessageRecord", record), ANSWER, starts, "broker-a")


def test_a_handle_is_read_as_it_is_written() -> None:
    assert HANDLE.text == "5 1000 60000 3 0 broker-a 2 7"
    assert parse_handle(HANDLE.text) == HANDLE


def test_which_topic_a_handle_means() -> None:
    assert HANDLE.real_topic("T", "G") == "T"
    assert HANDLE._replace(mark="1").real_topic("T", "G") == "%RETRY%G_T"
    assert HANDLE._replace(mark="2").real_topic("T", "G") == "%RETRY%G+T"


def test_messages_of_the_topic_and_of_its_retry_topics() -> None:
    assert handle_for(Record("T")) == HANDLE
    assert handle_for(Record("%RETRY%G+T")).text == "6 1000 60000 3 2 broker-a 2 7"
    assert handle_for(Record("%RETRY%G_T")).text == "4 1000 60000 3 1 broker-a 2 7"


def test_a_message_may_bring_its_handle() -> None:
    assert handle_for(Record("T", POP_CK="1 2 3 4 1 b 5 6")).text == "1 2 3 4 1 b 5 6"


@pytest.mark.parametrize("text", ["", "1 2 3", "1 2 3 4 9 b 5 6", "x 2 3 4 0 b 5 6"])
def test_no_handles(text: str) -> None:
    with pytest.raises(ContentError):
        parse_handle(text)


@pytest.mark.parametrize("text", ["0 2", "0 x 5", "0 2 5 7"])
def test_no_start_offsets(text: str) -> None:
    with pytest.raises(ContentError):
        start_offsets(text)


def test_an_answer_that_does_not_name_the_queue() -> None:
    with pytest.raises(ContentError, match="does not name"):
        handle_of(cast("MessageRecord", Record("T")), ANSWER, {}, "broker-a")


def test_failed_messages_stay_away_longer_each_time() -> None:
    assert [pop_delay_ms(0, times) for times in range(3)] == [10_000, 30_000, 60_000]
    assert pop_delay_ms(1, 5) == 1000
    assert pop_delay_ms(99, 0) == pop_delay_ms(0, 99) == 7_200_000
