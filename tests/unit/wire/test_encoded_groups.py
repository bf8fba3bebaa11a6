"""Tables of groups whose groups are encoded once: the same bytes as ever."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.model.group import SubscriptionGroup
from gantrymq.model.offsets import DataVersion
from gantrymq.wire.bodies.encoded_groups import EncodedGroups
from gantrymq.wire.bodies.group import GROUP_TABLE, GroupTable

NAMES = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=20)
GROUPS = st.dictionaries(NAMES | st.just("subscriptionGroupTable"), st.integers(0, 9), max_size=5)
FORBIDDEN = st.dictionaries(
    NAMES | st.just("subscriptionGroupTable"),
    st.dictionaries(NAMES, st.integers(1, 9), min_size=1, max_size=2),
    max_size=2,
)


@given(st.lists(st.tuples(GROUPS, FORBIDDEN), max_size=6))
def test_the_bytes_are_those_of_the_plain_codec(
    tables: list[tuple[dict[str, int], dict[str, dict[str, int]]]],
) -> None:
    encoded = EncodedGroups()
    for counter, (groups, forbidden) in enumerate(tables):
        table = GroupTable(
            data_version=DataVersion(timestamp_ms=7, counter=counter),
            subscription_group_table={
                name: SubscriptionGroup(name, retry_times_max=times)
                for name, times in groups.items()
            },
            forbidden_table=forbidden,
        )
        assert encoded.encode(table) == GROUP_TABLE.encode(table)
        assert len(encoded) <= 2 * len(groups)
