"""Names against the one-line rules that Apache gives for them."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from gantrymq.errors import InvalidValue
from gantrymq.model import names

APACHE_RULE: Final = re.compile(r"^[%|a-zA-Z0-9_-]+\Z")
LEGAL: Final = st.text(
    st.sampled_from("%|-_abcxyzABCXYZ0123456789"),
    min_size=1,
    max_size=60,
)
PLAIN: Final = st.from_regex(r"[a-zA-Z0-9_|-]{1,30}", fullmatch=True)
ANY: Final = st.text(max_size=140) | LEGAL | LEGAL.map(lambda name: "%RETRY%" + name * 3)


@given(ANY)
def test_a_topic_is_legal_exactly_by_apaches_rule(name: str) -> None:
    longest = 255 if name.startswith(("%RETRY%", "%DLQ%")) else 127
    legal = APACHE_RULE.match(name) is not None and len(name) <= longest
    try:
        assert names.check_topic(name) == name
    except InvalidValue:
        assert not legal
    else:
        assert legal


@given(ANY)
def test_every_legal_topic_can_be_a_directory(name: str) -> None:
    try:
        names.check_topic(name)
    except InvalidValue:
        return
    assert names.is_path_safe(name)


@given(st.text(max_size=300) | st.lists(st.sampled_from(["..", "/", "a", "\\", "\0"])).map("".join))
def test_a_safe_name_stays_in_its_directory(name: str) -> None:
    if names.is_path_safe(name):
        path = PurePosixPath("/store/consumequeue") / name
        assert path.parent == PurePosixPath("/store/consumequeue")
        assert path.name == name
        assert len(name.encode()) <= 255


@given(PLAIN, PLAIN)
def test_topics_of_groups_lead_back(group: str, topic: str) -> None:
    assert names.group_of(names.retry_topic(group)) == group
    assert names.group_of(names.dlq_topic(group)) == group
    for version in (1, 2):
        retry = names.pop_retry_topic(group, topic, version)
        assert names.is_retry_topic(retry)
        assert names.popped_topic(retry, group) == topic


@given(PLAIN, PLAIN, st.sampled_from(["", "%RETRY%", "%DLQ%"]))
def test_namespaces_come_off_again(namespace: str, bare: str, prefix: str) -> None:
    name = prefix + bare
    full = names.with_namespace(namespace, name)
    if full == name:
        assert names.is_system_topic(name) or name.startswith("CID_RMQ_SYS_")
        return
    if names.namespace_of(full):
        assert names.namespace_of(full) == namespace
        assert names.without_namespace(full) == name
        assert names.with_namespace(namespace, full) == full
