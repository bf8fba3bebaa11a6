"""What the kernel does: one typed interface, two implementations.

`reference` (readable Python) is the meaning of every function; `_native` (Cython) is the speed. The
same tests run both and the same bytes must give the same result or the same error, word for word.

Rules that hold for every function:

- A `Buffer` is anything with the buffer protocol and consecutive bytes, writable where it is
  written to. `start` and `end` (or `position`) must satisfy `0 <= start <= end <= len(buffer)`.
  Nothing outside is read. `log_base`, the log offset of `buffer[0]`, is between 0 and 2**62, or -1
  where it is not known. Anything else is `InvalidValue`.
- A buffer is held only while the call runs, except by a `PullWay`. Only the lanes (`lanes.py`) and
  the tails of queues (`tails.py`) keep state; the task that owns one is the only one that may call
  it.
- Text is UTF-8. Where a hash or a column needs characters, invalid bytes count as U+FFFD, one for
  each maximal ill-formed part, as in Java and in Python's `errors="replace"`.
- A property string is `name 0x01 value 0x02 ...`; the first 0x01 of an entry ends its name; an
  entry with an empty name or value does not count; a repeated name: the last one wins.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence
    from mmap import mmap

    from gantrymq.kernel import tails as queue_tails
    from gantrymq.kernel.lanes import PullLane, PullWay, SendLane
    from gantrymq.kernel.values import (
        Audit,
        Columns,
        Dispatch,
        FileWrite,
        Frame,
        Gathered,
        PullRequest,
        QueueRun,
        Record,
        Refused,
        Scan,
        SendAnswer,
        SendRequest,
    )

    Buffer: TypeAlias = bytes | bytearray | memoryview | mmap
    WritableBuffer: TypeAlias = bytearray | memoryview | mmap


class Kernel(Protocol):
    """The functions of a kernel module. `KERNEL_NAME` is `compiled` or `readable`."""

    KERNEL_NAME: str
    SendLane: type[SendLane]
    PullLane: type[PullLane]
    PullWay: type[PullWay]
    QueueTail: type[queue_tails.QueueTail]

    # -- frames

    def split_frames(
        self, buffer: Buffer, start: int, end: int, frame_bytes_max: int
    ) -> tuple[list[Frame], int]:
        """Return the complete frames in the range and the position behind the last of them.

        Checked as soon as the bytes are there, before the frame is complete: total length (as
        signed 32 bit) at least 4 and, with its 4 bytes, at most `frame_bytes_max` (field
        `frame.length`); serialize type 0 or 1 (`frame.serializeType`); header length at most total
        - 4 (`frame.headerLength`). A bad frame raises ProtocolError if it is the first in the
        range; otherwise the list ends before it.
        """
        ...

    def decode_request(self, buffer: Buffer, frame: Frame) -> SendRequest | PullRequest | None:
        """Decode one of the four hot requests, or return None: the general codec must look at it.

        None is the answer to everything unusual, valid or not: a response, another code, a missing
        required field, a number that does not parse, bad UTF-8, a JSON header that is not one
        strict JSON object whose values are strings, integers in 64 bits, booleans or null (and
        `extFields` an object of strings, integers and booleans, or null), a lone surrogate, a
        float, an exponent. Repeated keys: the last wins, at both levels. In a binary header a
        zero-length value is null (None is the answer if its key is none of the code's own), its
        keys are not empty, the areas are used up exactly, remark and ext lengths not negative. Null
        fields are absent. `code`, `flag`, `opaque`, `version` must be JSON integers in 32 bits
        (`version` may be absent: 0); `flag` defaults to 0, `code` and `opaque` are required.
        Integer fields parse as Java's parseInt and parseLong: sign + or -, ASCII digits, range; raw
        JSON integers and booleans count as their text. Boolean fields: text `true` in any case is
        true, all else false. Required of a send: producer group, topic, default topic, default
        topic queues, queue id, sysFlag, born timestamp, flag; code 10 with long names, 310 and 320
        with one-letter names (`extra_fields` is True when the header has any field beyond the
        fourteen of its code). Properties default to empty, reconsume times to 0, unit mode and
        batch to False. Required of a pull: consumerGroup, topic, queueId, queueOffset, maxMsgNums,
        sysFlag, commitOffset, suspendTimeoutMillis, subVersion; optional: subscription,
        expressionType, maxMsgBytes, bname. Text fields may be empty.
        """
        ...

    def split_send_replies(
        self, buffer: Buffer, start: int, end: int, frame_bytes_max: int, opaque_min: int
    ) -> tuple[list[SendAnswer], int]:
        """Return the plain answers to sends at the front of a range, and the position behind them.

        For a client: a producer gets many of them in one read. The walk ends before the first frame
        that is anything else, or not complete, or no frame; nothing is raised for its bytes.

        Plain is a frame without a body whose header says code 0, flag 1, an opaque of at least
        `opaque_min` (below are those of whoever wants all of the answer), and has the ext fields
        msgId, queueId and queueOffset, if it likes transactionId, MSG_REGION and TRACE_ON, none of
        them twice and no others. Their values are printable ASCII without quotes and backslashes,
        and not empty; the numbers parse as Java's. A binary header has no remark. A JSON header has
        no blanks and no escapes; beside `extFields` it has the integers code, flag, opaque, of 32
        bits, and if it likes an integer `version` and texts `language` and
        `serializeTypeCurrentRPC`, none of them twice.
        """
        ...

    def encode_send_reply(
        self,
        opaque: int,
        serialize_type: int,
        version: int,
        queue_id: int,
        queue_offset: int,
        message_ids: bytes,
        region: bytes,
        trace_on: bool,
    ) -> bytes:
        """Return the whole frame of a SUCCESS reply to a send.

        JSON, without blanks, keys in this order: code 0; extFields msgId, queueId, queueOffset,
        TRACE_ON, MSG_REGION, all strings; flag 1; language PYTHON; opaque; serializeTypeCurrentRPC
        JSON; version. Binary: the same fields in the same order, language 3, no remark, MSG_REGION
        left out when empty. `message_ids` and `region` must be printable ASCII without quotes and
        backslashes, else InvalidValue.
        """
        ...

    def refuse_sends(
        self,
        buffer: Buffer,
        start: int,
        end: int,
        frame_bytes_max: int,
        version: int,
        code: int,
        remark: bytes,
        region: bytes,
        trace_on: bool,
    ) -> Refused:
        """Return refusals of the sends at the front of a range, and where that ends.

        It ends before the first frame that is not complete, no frame, or none that `decode_request`
        takes for a send; nothing is raised for its bytes. A refusal is a response in the request's
        header codec, as the replies to sends, with the fields TRACE_ON and MSG_REGION (the latter
        left out of a binary header when empty) and the remark. A oneway send gets none. Remark and
        region are printable ASCII as above.
        """
        ...

    def encode_pull_reply(
        self,
        opaque: int,
        serialize_type: int,
        version: int,
        code: int,
        remark: bytes,
        suggest_broker_id: int,
        next_begin_offset: int,
        min_offset: int,
        max_offset: int,
        body_bytes: int,
    ) -> bytes:
        """Return length and header of a pull reply; `body_bytes` of body follow it on the wire.

        As above with the fields suggestWhichBrokerId, nextBeginOffset, minOffset, maxOffset; the
        remark stands behind opaque and is left out when empty; it must be printable ASCII as above.
        """
        ...

    # -- records

    def crc32(self, data: Buffer) -> int:
        """Return the CRC-32 of `data` with the sign bit cleared, as records keep it."""
        ...

    def string_hash(self, text: bytes) -> int:
        """Return Java's `String.hashCode` of UTF-8 text, signed: tag codes and index keys are made
        of it.
        """
        ...

    def record_bytes(self, record: Record) -> int:
        """Return the size of a record when encoded.

        Raises InvalidValue for what cannot be encoded: host lengths other than 8 or 20 or not
        matching the sysFlag bits 0x10 (born) and 0x20 (store), an empty topic or one over 32767
        bytes, properties over 32767 bytes, a size over 2**31 - 1.
        """
        ...

    def encode_record(
        self, target: WritableBuffer, position: int, limit: int, record: Record
    ) -> int:
        """Write a record at `position`; return the position behind it, or -1 if it needs more than
        `limit - position - 8` bytes (nothing is written then).

        Its magic is written last, as it is by the lane: a process that is killed on the way leaves
        no record behind, not half of one.

        Raises InvalidValue as `record_bytes` does, and for a number that does not fit its field.
        """
        ...

    def encode_blank(self, target: WritableBuffer, position: int, limit: int) -> None:
        """Write the 8-byte blank record that makes `target[position:limit]` end-of-file filler.

        Raises InvalidValue if fewer than 8 bytes are left.
        """
        ...

    def touch_pages(self, target: WritableBuffer, position: int, limit: int, step: int) -> None:
        """Write the byte at `position` and every `step` bytes on, before `limit`, as it is.

        So that pages of a mapped file are there before they are needed. What others write there at
        the same time is not lost.

        Raises InvalidValue for a step below 1.
        """
        ...

    def decode_record(
        self, buffer: Buffer, position: int, end: int, verify_crc: bool
    ) -> tuple[Record, int]:
        """Return the record at `position` and the position behind it.

        Raises RecordError with the field `record.size`, `record.magic`, `record.lengths` or
        `record.bodyCrc`; a blank record is `record.magic`.
        """
        ...

    def scan_records(
        self,
        buffer: Buffer,
        start: int,
        end: int,
        log_base: int,
        verify_crc: bool,
        records_max: int,
    ) -> Scan:
        """Walk the records of a range and check them.

        In this order: fewer than 8 bytes left (0: END, else INCOMPLETE); blank magic: BLANK; other
        magic than v1, v2: BAD_MAGIC; size below 91 (v2: 92): BAD_SIZE; size past the range:
        INCOMPLETE; negative or overlong inner length, or sizes that do not add up: BAD_SIZE;
        `log_base >= 0` and a physical offset other than log_base + position: BAD_OFFSET;
        `verify_crc`, a body, and another CRC: BAD_CRC. `records_max` reached: LIMIT, unless the
        range ends there (END).
        """
        ...

    def find_record(self, buffer: Buffer, start: int, end: int, log_base: int) -> int:
        """Return the first position in [start, end - 36] that looks like a record's start, or -1.

        It does when magic v1 or v2 stands 4 bytes on, the size is at least 91 and the physical
        offset 28 bytes on is log_base + position. Lets a reader begin at any byte of a log.
        """
        ...

    def find_torn(self, buffer: Buffer, start: int, end: int, sector_bytes: int) -> int:
        """Return where the first record of a range begins that looks torn, or -1.

        It does when its topic holds a zero, or when its properties, from a multiple of
        `sector_bytes` in the buffer on, hold nothing else up to the next one or to their end. The
        walk is that of `scan_records` without offsets and check sums, and ends where that ends.

        Raises InvalidValue for a sector below 1.
        """
        ...

    # -- what is built from records

    def dispatch_records(
        self,
        buffer: Buffer,
        start: int,
        end: int,
        log_base: int,
        verify_crc: bool,
        records_max: int,
        delays_ms: Sequence[int],
    ) -> Dispatch:
        """Build consume queue units and index keys from a range, walking as `scan_records` does.

        Unit: i64 physical offset (the record's own), i32 size, i64 tags code; none for transaction
        types prepared and rollback (sysFlag & 0xC of 4 or 12). Tags code: string hash of TAGS,
        sign-extended; 0 without; for topic SCHEDULE_TOPIC_XXXX with a DELAY that parses (as
        parseInt) above 0: store timestamp + `delays_ms[min(DELAY, len) - 1]` (1000 if there are no
        delays), wrapping at 64 bits. Index keys, except for rollback: UNIQ_KEY, then each non-empty
        word of KEYS between blanks; hash = absolute string hash of `topic#key`, 0 for the least
        integer.
        """
        ...

    def audit_records(
        self,
        buffer: Buffer,
        start: int,
        end: int,
        log_base: int,
        records_max: int,
        delays_ms: Sequence[int],
    ) -> Audit:
        """Check the records of a range, and build what a comparison with the queues needs.

        The walk is that of `dispatch_records` with `verify_crc`, and so are the units and the
        errors; index keys are counted and not made.
        """
        ...

    def gather_records(
        self,
        units: Buffer,
        start: int,
        end: int,
        log: Buffer,
        log_start: int,
        log_end: int,
        log_base: int,
        hashes: Sequence[int],
        messages_max: int,
        bytes_max: int,
    ) -> Gathered:
        """Copy the records that matching units of `units[start:end]` point to, in their order.

        A unit matches when `hashes` is empty, or holds the low 32 bits of its tags code as a signed
        number. With `hashes`, one whose tags code is an address in the extension ends the walk
        before it: Python must look. The walk also ends where less than a unit is left; before a
        unit of size <= 0; before a match whose record is not whole within `log[log_start:log_end]`;
        before a record that would bring the bytes above `bytes_max`, unless it is the first; and
        behind the last of `messages_max` records. Pre-blank units (size 2147483647) and those that
        do not match are passed over. Records are copied unseen: whoever wrote the units vouches for
        them.

        Raises InvalidValue, beside the ranges, for an unknown `log_base`, for bounds below 1, and
        for hashes that are not of 32 bits.
        """
        ...

    def extend_queues(
        self, tails: dict[tuple[bytes, int], queue_tails.QueueTail], runs: list[QueueRun]
    ) -> list[QueueRun]:
        """Add runs to the tails of their queues, by topic and queue id; return the others in order.

        A run is added if the tail is open, the first unit has the queue offset that comes next
        there, and its message lies at or behind the tail's log end. The tail of a run that is not
        added is closed, so that those behind it wait for it.
        """
        ...

    def write_files(self, writes: list[FileWrite]) -> None:
        """Write at positions of files, in order; nothing is forced.

        A file that is not there, or is shorter, is made `size` bytes long first; directories are
        made as need be. OSError names the first file that fails; those behind it are not touched.
        """
        ...

    def scan_units(
        self, buffer: Buffer, start: int, end: int, log_end: int, log_limit: int
    ) -> tuple[int, int, int]:
        """Walk the good units of a consume queue range.

        The walk ends where less than a unit is left, and before a unit with a negative log offset
        or a size <= 0. Pre-blank units are passed over; any other unit also ends it when its log
        offset is below the end of the message before it (`log_end` before the first), or not below
        `log_limit`. Both are of 64 bits and not negative. Returns the position behind the last good
        unit, the log offset behind the last message among them (`log_end` if there is none), and
        the last address in the extension among their tags codes (0 if there is none).
        """
        ...

    def insert_keys(
        self, target: WritableBuffer, slots: int, entries_max: int, keys: Buffer, start: int
    ) -> int:
        """Insert keys, laid out as in `Dispatch.keys`, into the image of an index file.

        `target` begins with the header; `reference/index.py` draws it. Keys are taken from `start`
        on until they are used up, or one is due and the file is full: its entry count is at least
        `entries_max`. A count <= 0 counts as 1. A key whose log offset is below the header's end
        offset is passed over, also by a full file. An entry gets the number that is the count;
        slot: the low 31 bits of the hash modulo `slots`; a slot's number outside [1, count] counts
        as none; seconds since the begin timestamp: 0 if that is <= 0 or later, at most 2147483647.
        The first entry sets the header's begin, every entry its end. Returns the position behind
        the last key taken or passed over; fewer than 20 bytes at the end are no key.

        Raises InvalidValue, in this order, for less than one slot or entry, for a target too small
        for them, and for a `start` that is no multiple of 20 within the keys.
        """
        ...

    def scan_columns(
        self,
        buffer: Buffer,
        start: int,
        end: int,
        log_base: int,
        verify_crc: bool,
        names: Sequence[str],
        topics: Sequence[bytes],
        rows_max: int,
        bytes_max: int,
    ) -> Columns:
        """Return the chosen columns of the records in a range, walking as `scan_records` does.

        `names` are of `COLUMN_NAMES` (else InvalidValue); `topics` empty means all. Stops with
        LIMIT before a row beyond `rows_max`, or a row that would bring the record bytes taken above
        `bytes_max` (at most 2**29; the first row is always taken); unless the range ends there.
        Records of other topics count for `scanned` only. `born_host` and `store_host` are
        `a.b.c.d:port`, or eight lower-case hexadecimal groups for IPv6, port signed. `message_id`
        is the upper-case hexadecimal store host and log offset. `tags`, `keys`, `unique_key` are
        null when the property is absent. Texts with invalid UTF-8 are mended with U+FFFD.
        """
        ...
