"""The consumer groups of a broker: made when asked for, kept, forbidden."""

from __future__ import annotations

import msgspec
import pytest

from gantrymq.broker import groups as groups_module
from gantrymq.broker.groups import Groups
from gantrymq.errors import InvalidValue
from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.names import SYSTEM_GROUPS
from gantrymq.model.offsets import DataVersion
from gantrymq.testing.clock import START_MS, VirtualClock
from gantrymq.wire.bodies.group import GroupTable
from support.golden import STORE_LABELS
from support.stores import golden_store


def groups(*, auto_create: bool = True) -> Groups:
    return Groups(VirtualClock(), auto_create=auto_create)


def test_the_system_s_groups_exist_from_the_start() -> None:
    made = groups()
    assert set(made.all()) == SYSTEM_GROUPS
    assert made.data_version == DataVersion(0, START_MS, 0)
    assert not made.is_dirty


def test_an_unknown_group_is_made_when_it_may_be() -> None:
    told: list[SubscriptionGroup] = []
    made = Groups(VirtualClock(), changed=told.append)
    assert made.find("g") is None
    assert made.find_or_create("g") == SubscriptionGroup("g")
    assert made.find_or_create("g") is made.find("g")
    assert told == [SubscriptionGroup("g")]
    assert made.data_version.counter == 1


def test_an_unknown_group_is_refused_where_it_may_not_be_made() -> None:
    made = groups(auto_create=False)
    assert made.find_or_create("g") is None
    assert made.find_or_create("CID_RMQ_SYS_REVIVE") is not None
    assert made.find_or_create("TOOLS_CONSUMER") is not None


@pytest.mark.parametrize("name", ["", " ", "a/b", "../x", "g" * 300, "a@b"])
def test_a_name_that_is_not_legal_is_nobody_s_group(name: str) -> None:
    made = groups()
    assert made.find_or_create(name) is None
    assert not made.is_dirty


def test_a_group_that_could_have_no_retry_topic_is_refused() -> None:
    with pytest.raises(InvalidValue, match="directory"):
        groups().put(SubscriptionGroup("../x"))


def test_a_group_is_changed_and_removed() -> None:
    gone: list[str] = []
    made = Groups(VirtualClock(), removed=gone.append)
    made.put(SubscriptionGroup("g", retry_times_max=3))
    made.change(SubscriptionGroup("g", attributes={"+priority.factor": "50"}))
    found = made.find("g")
    assert found is not None
    assert found.attributes == {"priority.factor": "50"}
    assert found.retry_times_max == 16
    with pytest.raises(InvalidValue, match="number from 0 to 100"):
        made.change(SubscriptionGroup("g", attributes={"+priority.factor": "101"}))
    made.forbid("g", "T", forbidden=True)
    assert made.remove("g")
    assert not made.remove("g")
    assert gone == ["g"]
    assert not made.is_forbidden("g", "T")
    assert made.find("g") is None


def test_forbidding_one_topic_leaves_the_others() -> None:
    made = groups()
    made.find_or_create("g")
    made.forbid("g", "T1", forbidden=True)
    made.forbid("g", "T2", forbidden=True)
    made.forbid("g", "T1", forbidden=False)
    assert not made.is_forbidden("g", "T1")
    assert made.is_forbidden("g", "T2")
    assert made.forbidden == {"g": {"T2": 4}}
    again = groups()
    again.load(made.encode())
    assert again.is_forbidden("g", "T2")
    counter = made.data_version.counter
    made.forbid("g", "T2", forbidden=True)
    assert made.data_version.counter == counter
    made.forbid("g", "T2", forbidden=False)
    assert made.forbidden == {}
    with pytest.raises(InvalidValue, match="create it first"):
        made.forbid("stranger", "T", forbidden=True)


def test_a_broker_has_room_for_so_many_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    made = groups()
    monkeypatch.setattr(groups_module, "GROUPS_MAX", len(made.all()) + 1)
    assert made.find_or_create("one") is not None
    assert made.find_or_create("two") is None
    with pytest.raises(InvalidValue, match="delete some"):
        made.put(SubscriptionGroup("two"))


def test_a_slave_becomes_its_master() -> None:
    changed: list[SubscriptionGroup] = []
    removed: list[str] = []
    made = Groups(VirtualClock(), changed=changed.append, removed=removed.append)
    made.find_or_create("old")
    changed.clear()
    made.adopt(
        GroupTable(
            data_version=DataVersion(1, 2, 3),
            subscription_group_table={"new": SubscriptionGroup("new")},
            forbidden_table={"new": {"T": 4}},
        )
    )
    assert set(made.all()) == {"new"}
    assert changed == [SubscriptionGroup("new")]
    assert "old" in removed
    assert made.is_forbidden("new", "T")
    assert made.data_version == DataVersion(1, 2, 3)
    assert made.is_dirty


@pytest.mark.parametrize("label", STORE_LABELS)
def test_apache_s_file_is_written_again_as_it_was(label: str) -> None:
    content = golden_store(label).files["config/subscriptionGroup.json"]
    made = groups()
    made.load(content)
    before, after = msgspec.json.decode(content), msgspec.json.decode(made.encode())
    newer = "5.5.0" in label
    for name, group in before["subscriptionGroupTable"].items():
        kept = after["subscriptionGroupTable"][name]
        assert (kept if newer else {key: kept[key] for key in group}) == group
    assert before["dataVersion"].items() <= after["dataVersion"].items()
    if newer:
        assert after == before
