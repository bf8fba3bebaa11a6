"""Input whose size alone is the attack: refused at once, and in few words."""

from __future__ import annotations

import struct
import zlib
from time import process_time

import pytest

from gantrymq.errors import ContentError, InvalidValue, ProtocolError
from gantrymq.limits import (
    GROUP_BYTES_MAX,
    JSON_ENTRIES_MAX,
    JSON_LOOSE_BYTES_MAX,
    REGISTRATION_TOPICS_MAX,
)
from gantrymq.model import names
from gantrymq.model.topic import TopicConfig
from gantrymq.wire import fastjson
from gantrymq.wire.bodies.codec import TEXT
from gantrymq.wire.bodies.registration import REGISTRATION, Registration
from gantrymq.wire.bodies.topic import TopicTable
from gantrymq.wire.command import BINARY_HEADER, JSON_HEADER, Command
from gantrymq.wire.fields import Header, Int32
from gantrymq.wire.header_codec import decode_header, encode_header
from gantrymq.wire.loose_json import LooseReader

SECONDS_MAX = 2.0
"""Far more than any of these takes; far less than what they cost before they were refused."""


class OneNumber(Header, frozen=True, kw_only=True):
    """A header with a number."""

    queue_id: Int32


@pytest.fixture(autouse=True)
def in_time() -> object:
    began = process_time()
    yield
    assert process_time() - began < SECONDS_MAX


class TestJsonBodies:
    """Many small things, and text that is nearly JSON."""

    def test_entries_have_a_bound(self) -> None:
        with pytest.raises(ContentError, match=f"at most {JSON_ENTRIES_MAX} are read"):
            fastjson.parse(b"[" + b"{}," * JSON_ENTRIES_MAX + b"{}]")

    def test_text_that_is_read_by_character_has_a_bound(self) -> None:
        text = b'["' + b"a" * JSON_LOOSE_BYTES_MAX + b'"]x'
        with pytest.raises(ContentError, match="bytes that are not strict JSON; at most"):
            fastjson.parse(text)

    def test_numbers_as_keys_cost_little(self) -> None:
        table = b",".join(b'"t%d@g":{0:1,1:2,-1:3}' % n for n in range(50_000))
        parsed = fastjson.parse(b'{"offsetTable":{' + table + b"}}")
        assert isinstance(parsed, dict)
        assert parsed["offsetTable"]["t7@g"] == {"0": 1, "1": 2, "-1": 3}
        assert len(parsed["offsetTable"]) == 50_000

    @pytest.mark.parametrize(
        "text", [b'{"a":"{0:1}",2:"x\\",3:4"}', b'{1:"{2:3}","\\"":{4:"5:6"}}', b"{1:2,}"]
    )
    def test_quotes_go_to_keys_alone(self, text: bytes) -> None:
        """What looks like such a key inside a text is left as it is."""
        loose = LooseReader(text.decode(), "body").read()
        assert fastjson.parse(text) == loose


class TestRegistrations:
    """A few KiB that inflate to a long table."""

    @staticmethod
    def packed(topics: int) -> bytes:
        def part(text: bytes) -> bytes:
            return struct.pack(">i", len(text)) + text

        line = part(b"T 1 1 6 SINGLE_TAG ")
        plain = part(b"{}") + struct.pack(">i", topics) + line * topics + part(b"[]")
        return zlib.compress(plain, 9)

    def test_the_number_of_topics_has_a_bound(self) -> None:
        with pytest.raises(ContentError, match=f"at most {REGISTRATION_TOPICS_MAX}"):
            REGISTRATION.decode(self.packed(REGISTRATION_TOPICS_MAX + 1))

    def test_ten_thousand_topics_are_quick(self) -> None:
        assert list(
            REGISTRATION.decode(
                self.packed(10_000)
            ).topic_config_serialize_wrapper.topic_config_table
        ) == ["T"]

    @pytest.mark.parametrize("number", ["1_0", "\u0661", "1 ", "0x1"])
    def test_only_plain_digits_are_numbers(self, number: str) -> None:
        line = f"T {number} 1 6 SINGLE_TAG ".encode()
        plain = b"".join(
            struct.pack(">i", len(part)) + part if isinstance(part, bytes) else part
            for part in (b"{}",)
        )
        plain += struct.pack(">ii", 1, len(line)) + line + struct.pack(">i", 2) + b"[]"
        with pytest.raises(ContentError, match="not a topic line"):
            REGISTRATION.decode(zlib.compress(plain))

    @pytest.mark.parametrize("name", ["a b", "\ud800"])
    def test_a_name_that_would_not_be_read_back(self, name: str) -> None:
        table = TopicTable(topic_config_table={name: TopicConfig(name=name)})
        with pytest.raises(InvalidValue):
            REGISTRATION.encode_compressed(Registration(topic_config_serialize_wrapper=table))


class TestHeaders:
    """Numbers, nulls and keys."""

    def test_a_long_run_of_zeros_is_a_number(self) -> None:
        assert OneNumber.decode({"queueId": "0" * 1_000_000 + "7"}).queue_id == 7

    def test_and_with_a_letter_it_is_none(self) -> None:
        with pytest.raises(ContentError, match="is not a 32-bit integer"):
            OneNumber.decode({"queueId": "0" * 1_000_000 + "x"})

    @pytest.mark.parametrize("text", ["", "+", "-", "- 1"])
    def test_a_sign_alone_is_no_number(self, text: str) -> None:
        with pytest.raises(ContentError):
            OneNumber.decode({"queueId": text})

    def test_a_bad_field_leaves_the_connection_usable(self) -> None:
        """The server tells the two apart by the class."""
        with pytest.raises(ContentError):
            OneNumber.decode({})
        with pytest.raises(ProtocolError) as raised:
            decode_header(b"{", JSON_HEADER, b"")
        assert not isinstance(raised.value, ContentError)

    @pytest.mark.parametrize("key", ["flag", "version"])
    def test_null_counts_as_absent(self, key: str) -> None:
        header = b'{"code":34,"opaque":1,"%b":null}' % key.encode()
        command = decode_header(header, JSON_HEADER, b"")
        assert (command.flag, command.version) == (0, 0)

    @pytest.mark.parametrize("key", ["code", "opaque"])
    def test_but_not_for_what_must_be_there(self, key: str) -> None:
        header = b'{"code":34,"opaque":1,"%b":null}' % key.encode()
        with pytest.raises(ProtocolError, match=f"header.{key}"):
            decode_header(header, JSON_HEADER, b"")

    @pytest.mark.parametrize("value", ["[]", "{}"])
    def test_a_long_key_is_not_repeated(self, value: str) -> None:
        header = '{"code":1,"opaque":1,"extFields":{"' + "k" * 100_000 + f'":{value}}}}}'
        with pytest.raises(ProtocolError) as raised:
            decode_header(header.encode(), JSON_HEADER, b"")
        assert len(str(raised.value)) < 200

    @pytest.mark.parametrize("serialize_type", [JSON_HEADER, BINARY_HEADER])
    @pytest.mark.parametrize(
        "changes",
        [{"opaque": 2**40}, {"code": 2**31}, {"fields": {"a": None}}, {"fields": {"a": 5}}],
    )
    def test_what_no_peer_reads_is_not_written(
        self, changes: dict[str, object], serialize_type: int
    ) -> None:
        values: dict[str, object] = {"code": 1, "opaque": 1, "serialize_type": serialize_type}
        command = Command(**(values | changes))  # type: ignore[arg-type]
        with pytest.raises(InvalidValue):
            encode_header(command)


class TestNames:
    """Every legal group can have all that belongs to it."""

    def test_the_longest_group_has_its_topics(self) -> None:
        group = names.check_group("g" * GROUP_BYTES_MAX)
        for topic in (names.retry_topic(group), names.dlq_topic(group)):
            assert names.check_path_safe(names.check_topic(topic)) == topic
        with pytest.raises(InvalidValue):
            names.check_group("g" * (GROUP_BYTES_MAX + 1))

    @pytest.mark.parametrize("name", ["a.", "a ", "a\u202eb", "a\u200bb", "\x7f"])
    def test_what_nobody_sees_is_no_directory(self, name: str) -> None:
        assert not names.is_path_safe(name)


def test_text_that_is_not_unicode() -> None:
    with pytest.raises(InvalidValue):
        TEXT.encode("\ud800")
