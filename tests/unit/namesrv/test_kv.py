from __future__ import annotations

import pytest

from gantrymq.errors import ContentError, InvalidValue
from gantrymq.limits import KV_BYTES_MAX, KV_NAME_BYTES_MAX, KV_NAMESPACES_MAX, KV_VALUE_BYTES_MAX
from gantrymq.namesrv.kv import KvTables
from gantrymq.wire.response_errors import SystemFailure


@pytest.fixture
def saved() -> list[bytes]:
    return []


@pytest.fixture
def kv(saved: list[bytes]) -> KvTables:
    return KvTables(saved.append)


def test_the_file_is_apaches(kv: KvTables, saved: list[bytes]) -> None:
    kv.put("ORDER_TOPIC_CONFIG", "TopicTest", "broker-a:4;broker-b:4")
    kv.put("ns1", "k1", "v1")

    assert saved[-1] == (
        b'{"configTable":{"ORDER_TOPIC_CONFIG":{"TopicTest":"broker-a:4;broker-b:4"},'
        b'"ns1":{"k1":"v1"}}}'
    )
    assert kv.dump() == saved[-1]
    again = KvTables(saved.append)
    again.load(saved[-1])
    assert again.get("ns1", "k1") == "v1"
    assert again.dump() == kv.dump()


def test_values_come_and_go(kv: KvTables, saved: list[bytes]) -> None:
    assert kv.get("ns", "k") is None
    assert kv.table("ns") is None
    kv.put("ns", "k", "1")
    kv.put("ns", "k", "")
    assert kv.get("ns", "k") == ""
    kv.delete("ns", "absent")
    kv.delete("absent", "k")
    assert len(saved) == 2
    kv.delete("ns", "k")
    assert kv.get("ns", "k") is None
    assert kv.table("ns") == {}
    assert saved[-1] == b'{"configTable":{"ns":{}}}'


def test_what_could_not_be_saved_does_not_hold() -> None:
    def full(_content: bytes) -> None:
        raise OSError(28, "No space left on device")

    kv = KvTables(full)
    kv.load(b'{"configTable":{"ns":{"k":"old"}}}')
    with pytest.raises(SystemFailure, match=r"could not be saved.*No space left"):
        kv.put("ns", "k", "new")
    with pytest.raises(SystemFailure, match="could not be saved"):
        kv.delete("ns", "k")
    assert kv.get("ns", "k") == "old"


@pytest.mark.parametrize(
    ("namespace", "key", "value", "problem"),
    [
        ("", "k", "v", "namespace is blank"),
        ("ns", " ", "v", "key is blank"),
        ("n" * (KV_NAME_BYTES_MAX + 1), "k", "v", "has 513 bytes: use at most 512"),
        ("ns", "ä" * KV_NAME_BYTES_MAX, "v", "has 1024 bytes"),
        ("ns", "k", "v" * (KV_VALUE_BYTES_MAX + 1), "the value .* has 65537 bytes"),
        ("ns", "k", "\ud800", "not Unicode"),
    ],
)
def test_bad_texts(
    kv: KvTables, saved: list[bytes], namespace: str, key: str, value: str, problem: str
) -> None:
    with pytest.raises(InvalidValue, match=problem):
        kv.put(namespace, key, value)
    assert not saved
    assert kv.table(namespace) is None


def test_there_are_bounds(kv: KvTables, saved: list[bytes]) -> None:
    kv.load(
        b'{"configTable":{%s}}'
        % b",".join(b'"n%d":{}' % number for number in range(KV_NAMESPACES_MAX))
    )
    with pytest.raises(InvalidValue, match="1024 namespaces already"):
        kv.put("one more", "k", "v")

    many = b",".join(b'"k%d":"%s"' % (n, b"v" * 65000) for n in range(64))
    kv.load(b'{"configTable":{"ns":{%s}}}' % many)
    with pytest.raises(InvalidValue, match="delete keys first"):
        kv.put("ns", "k", "v" * 60000)
    assert not saved


@pytest.mark.parametrize("content", [b"", b"[]", b'{"configTable":5}', b'{"configTable":{"a":3}}'])
def test_a_file_that_is_something_else(kv: KvTables, content: bytes) -> None:
    with pytest.raises(ContentError):
        kv.load(content)


def test_a_file_that_is_too_large(kv: KvTables) -> None:
    with pytest.raises(ContentError, match="more than the"):
        kv.load(b" " * (KV_BYTES_MAX + 1))
