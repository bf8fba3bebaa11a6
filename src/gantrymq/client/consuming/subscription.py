"""What a consumer wants of a topic: tags, or an SQL92 expression.

A broker filters by the hash of a tag, so a message whose tag merely has the same hash comes
through; the client compares the text again. SQL92 is the broker's alone: it has compiled it.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from gantrymq.client.arguments import text
from gantrymq.errors import InvalidValue, shown
from gantrymq.limits import SUBSCRIPTION_CHARACTERS_MAX, SUBSCRIPTION_TAGS_MAX
from gantrymq.model.group import SQL92_EXPRESSION, SUBSCRIBE_ALL, TAG_EXPRESSION, Subscription
from gantrymq.model.names import check_topic
from gantrymq.wire.tags import TagFilter


class Sql(msgspec.Struct, frozen=True):
    """An SQL92 expression over a message's properties; `sql("a > 1")` makes one."""

    text: str

    def __post_init__(self) -> None:
        """Refuse what no broker could compile."""
        text("an SQL92 expression", self.text)
        if not self.text.strip():
            raise InvalidValue('the SQL92 expression is blank: give one, such as sql("price > 10")')
        if len(self.text) > SUBSCRIPTION_CHARACTERS_MAX:
            raise InvalidValue(
                f"an SQL92 expression of {len(self.text)} characters: "
                f"at most {SUBSCRIPTION_CHARACTERS_MAX} can be"
            )


Expression: TypeAlias = "str | Sql"
"""Tags as text (`a || b`, `*` for all), or SQL92."""


def sql(expression: str) -> Sql:
    """Return an SQL92 filter: `consumer.subscribe("orders", sql("price > 10 AND TAGS = 'a'"))`.

    Raises:
        InvalidValue: it is blank or too long; whether it is SQL92 the broker says.
    """
    return Sql(expression)


def subscription_of(topic: str, expression: Expression, version: int) -> Subscription:
    """Return what heartbeats say of a subscription; `version` is when it was made, in ms.

    Raises:
        InvalidValue: the topic is none, or the expression names no tag, or too many.
    """
    check_topic(topic)
    if isinstance(expression, Sql):
        return Subscription(
            topic=topic,
            expression=expression.text,
            version=version,
            expression_type=SQL92_EXPRESSION,
        )
    if not isinstance(expression, str):
        raise InvalidValue(
            f'the expression is {shown(repr(expression))}: give tags such as "a || b", or sql(...)'
        )
    if len(expression) > SUBSCRIPTION_CHARACTERS_MAX:
        raise InvalidValue(
            f"a tag expression of {len(expression)} characters: "
            f"at most {SUBSCRIPTION_CHARACTERS_MAX} can be"
        )
    tags = TagFilter.parse(expression.strip())
    if len(tags.tags) > SUBSCRIPTION_TAGS_MAX:
        raise InvalidValue(
            f"{len(tags.tags)} tags for {topic!r}: at most {SUBSCRIPTION_TAGS_MAX} can be"
        )
    return Subscription(
        topic=topic,
        expression=SUBSCRIBE_ALL if tags.is_all else expression.strip(),
        tags=tags.tags,
        tag_codes=tags.hashes,
        version=version,
        expression_type=TAG_EXPRESSION,
    )


def is_sql(subscription: Subscription) -> bool:
    """Tell whether the broker compiles this subscription."""
    return subscription.expression_type == SQL92_EXPRESSION
