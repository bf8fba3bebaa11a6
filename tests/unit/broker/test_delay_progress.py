"""How far each delay level has been delivered."""

from __future__ import annotations

import pytest

from gantrymq.broker.delay_progress import DelayProgress
from gantrymq.errors import ContentError, InvalidValue
from gantrymq.limits import DELAY_LEVELS_MAX
from gantrymq.model.offsets import DataVersion
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire import fastjson
from gantrymq.wire.bodies.offsets import DELAY_OFFSETS
from support.golden import STORE_LABELS
from support.stores import golden_store


def progress() -> DelayProgress:
    return DelayProgress(VirtualClock())


def test_what_is_set_is_found_again_after_a_restart() -> None:
    made = progress()
    assert made.find(3) == 0
    assert made.changes == 0
    made.set(3, 17)
    made.set(18, 4)
    assert made.is_dirty
    assert b'"offsetTable":{3:17,18:4}' in made.encode()
    again = progress()
    again.load(made.encode())
    assert (again.find(3), again.find(18), again.find(1)) == (17, 4, 0)
    assert again.all() == {3: 17, 18: 4}


@pytest.mark.parametrize(
    ("level", "offset"), [(0, 1), (-1, 1), (DELAY_LEVELS_MAX + 1, 1), (1, -1), (1, 1 << 63)]
)
def test_what_cannot_be_is_refused(level: int, offset: int) -> None:
    made = progress()
    with pytest.raises(InvalidValue):
        made.set(level, offset)
    assert made.all() == {}


@pytest.mark.parametrize("label", STORE_LABELS)
def test_apache_s_file_is_written_again_as_it_was(label: str) -> None:
    content = golden_store(label).files["config/delayOffset.json"]
    made = progress()
    made.load(content)
    before, after = fastjson.parse(content), fastjson.parse(made.encode())
    assert isinstance(before, dict)
    assert isinstance(after, dict)
    assert {key: after[key] for key in before} == before


def test_a_file_with_more_levels_than_there_can_be_is_refused() -> None:
    made = progress()
    made.set(1, 5)
    many = b",".join(b"%d:1" % level for level in range(DELAY_LEVELS_MAX + 1))
    with pytest.raises(InvalidValue, match="at most"):
        made.load(b'{"offsetTable":{' + many + b"}}")
    with pytest.raises(ContentError, match=r"delayOffset\.json"):
        made.load(b"7")
    assert made.all() == {1: 5}


def test_a_slave_becomes_its_master() -> None:
    made = progress()
    made.set(2, 9)
    version = b'{"counter":3,"stateVersion":1,"timestamp":2}'
    made.adopt(DELAY_OFFSETS.decode(b'{"offsetTable":{1:4},"dataVersion":' + version + b"}"))
    assert made.all() == {1: 4}
    assert made.data_version == DataVersion(1, 2, 3)
