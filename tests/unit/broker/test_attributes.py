"""5.x attributes: the text of a request, and what may be changed how."""

from __future__ import annotations

import pytest

from gantrymq.broker.attributes import (
    GROUP_ATTRIBUTES,
    TOPIC_ATTRIBUTES,
    changed_attributes,
    parse_changes,
)
from gantrymq.errors import InvalidValue


def test_the_text_of_a_request() -> None:
    assert parse_changes("+message.type=FIFO,-cleanup.policy") == {
        "+message.type": "FIFO",
        "-cleanup.policy": "",
    }
    assert parse_changes("") == parse_changes(None) == {}


@pytest.mark.parametrize(
    "text",
    ["a=b", "a", "+a", "+a=", "-a=b", ",", "+a=1,+a=2", "-a,-a", "+a=b,", "+a=" + "b" * 5000],
)
def test_another_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidValue):
        parse_changes(text)


def test_what_is_set_and_deleted() -> None:
    current = {"message.type": "FIFO", "cleanup.policy": "DELETE"}
    assert changed_attributes(TOPIC_ATTRIBUTES, current, {"-message.type": ""}) == {
        "cleanup.policy": "DELETE"
    }
    assert changed_attributes(TOPIC_ATTRIBUTES, current, {"+message.type": "DELAY"}) == {
        "message.type": "DELAY",
        "cleanup.policy": "DELETE",
    }
    created = {"+cleanup.policy": "DELETE", "+queue.type": "SimpleCQ"}
    assert changed_attributes(TOPIC_ATTRIBUTES, None, created) == {
        "cleanup.policy": "DELETE",
        "queue.type": "SimpleCQ",
    }
    odd = {"from.the": "future"}
    assert changed_attributes(TOPIC_ATTRIBUTES, odd, {}) == odd


@pytest.mark.parametrize(
    ("changes", "creating", "why"),
    [
        ({"+nothing": "1"}, False, "no attribute 'nothing'"),
        ({"message.type": "FIFO"}, False, "has no sign"),
        ({"": "FIFO"}, False, "has no sign"),
        ({"+message.type": "odd"}, False, "give one of"),
        ({"+cleanup.policy": "DELETE"}, False, "given at creation"),
        ({"-message.type": ""}, True, "cannot be deleted"),
        ({"+message.type": "FIFO", "-message.type": ""}, False, "do one of them"),
        ({"+cleanup.policy": "COMPACTION"}, True, "does not do"),
        ({"+queue.type": "BatchCQ"}, True, "does not do"),
        ({"+message.type": "LITE"}, True, "does not do"),
        ({"+reserve.time": "a day"}, True, "a number from -1"),
        ({"+lite.topic.expiration": "43201"}, True, "number from -1 to 43200"),
        ({"+lite.topic.expiration": "1_0"}, True, "number from -1"),
        ({"+lite.topic.expiration": "9" * 5000}, True, "number from -1"),
    ],
)
def test_a_change_that_cannot_be_says_why(
    changes: dict[str, str], creating: bool, why: str
) -> None:
    current = None if creating else {"message.type": "NORMAL"}
    with pytest.raises(InvalidValue, match=why) as caught:
        changed_attributes(TOPIC_ATTRIBUTES, current, changes)
    assert len(str(caught.value)) < 400


def test_groups_have_others() -> None:
    changes = {"+lite.sub.model": "Shared", "+lite.sub.reset.offset.exclusive": "true"}
    assert changed_attributes(GROUP_ATTRIBUTES, None, changes) == {
        "lite.sub.model": "Shared",
        "lite.sub.reset.offset.exclusive": "true",
    }
    with pytest.raises(InvalidValue):
        changed_attributes(GROUP_ATTRIBUTES, None, {"+message.type": "FIFO"})
