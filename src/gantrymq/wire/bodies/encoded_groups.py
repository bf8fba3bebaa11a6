"""Tables of groups as JSON, with every group encoded once; see `encoded_table`."""

from __future__ import annotations

from gantrymq.model.group import SubscriptionGroup
from gantrymq.wire.bodies.encoded_table import EncodedTable
from gantrymq.wire.bodies.group import GROUP_TABLE, GroupTable


class EncodedGroups(EncodedTable[GroupTable, SubscriptionGroup]):
    """Remembers what groups look like as JSON."""

    def __init__(self) -> None:
        super().__init__(
            GROUP_TABLE.encode, GroupTable(), "subscription_group_table", "subscriptionGroupTable"
        )
