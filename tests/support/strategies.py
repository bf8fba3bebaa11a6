"""What hypothesis feeds to the kernels: good input, good input spoiled, and noise.

Good input reaches every branch behind the checks, spoiled input every check, noise whatever nobody
thought of. Numbers lean towards the edges of their fields.
"""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING

from hypothesis import strategies as st

from gantrymq.kernel.values import Record
from support.samples import (
    LONG_NAMES,
    binary_header,
    blank_on_disk,
    frame,
    inner_message,
    pull_fields,
    record_on_disk,
    send_fields,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def integers(bits: int) -> st.SearchStrategy[int]:
    """Return numbers of a signed field, its edges often."""
    half = 1 << bits - 1
    return st.integers(-half, half - 1) | st.sampled_from([0, 1, -1, half - 1, -half])


def wild_integers(bits: int) -> st.SearchStrategy[int]:
    """Return numbers that seldom do not fit."""
    half = 1 << bits - 1
    return integers(bits) | st.sampled_from([half, -half - 1])


@st.composite
def spoiled(draw: st.DrawFn, base: st.SearchStrategy[bytes]) -> bytes:
    """Return good bytes after some accidents: a flip, a cut, a splice, a wrong number."""
    raw = bytearray(draw(base))
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, max(len(raw) - 1, 0)))
        accident = draw(st.sampled_from(["flip", "cut", "splice", "number", "insert"]))
        if accident == "flip" and raw:
            raw[at] ^= 1 << draw(st.integers(0, 7))
        elif accident == "cut":
            del raw[at:]
        elif accident == "splice":
            raw[at : at + draw(st.integers(0, 20))] = raw[draw(st.integers(0, at)) : at]
        elif accident == "number":
            raw[at : at + 4] = struct.pack(">i", draw(integers(32)))
        else:
            raw[at:at] = draw(st.binary(max_size=5))
    return bytes(raw)


@st.composite
def ranges(draw: st.DrawFn, size: int) -> tuple[int, int]:
    """Return a range of a buffer, mostly all of it, seldom outside."""
    if draw(st.integers(0, 9)):
        return 0, size
    return draw(st.integers(-2, size + 2)), draw(st.integers(-2, size + 2))


# -- texts and records ---------------------------------------------------------------------------

TEXTS = st.one_of(
    st.text(max_size=12).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=8),
    st.lists(
        st.sampled_from(
            [
                b"Aa",
                b"BB",
                b"\xff",
                b"\xe4\xb8",
                b"\xf0\x9f\x98\x80",
                b"\xed\xa0\x80",
                b" ",
                b"#",
                b"\xc3\xa9",
            ]
        ),
        max_size=6,
    ).map(b"".join),
)
"""UTF-8, nearly UTF-8, and not at all."""
PROPERTY_NAMES = [
    b"TAGS",
    b"KEYS",
    b"UNIQ_KEY",
    b"DELAY",
    b"WAIT",
    b"CLUSTER",
    b"INNER_MULTI_DISPATCH",
    b"TRAN_MSG",
    b"a",
]
PROPERTY_VALUES = [
    b"true",
    b"TRUE",
    b"false",
    b"1",
    b"+2",
    b"-1",
    b"99",
    b"2147483648",
    b"a b  c",
    b"Aa",
    b"",
]


@st.composite
def property_strings(draw: st.DrawFn) -> bytes:
    """Return property strings with entries that count, entries that do not, and odd separators."""
    names = st.sampled_from(PROPERTY_NAMES) | TEXTS
    values = st.sampled_from(PROPERTY_VALUES) | TEXTS
    entries = draw(st.lists(st.tuples(names, values), max_size=6))
    joined = b"\x02".join(name + b"\x01" + value for name, value in entries)
    return joined + draw(st.sampled_from([b"", b"", b"\x02", b"\x01", b"\x02x", b"\x02\x02"]))


HOSTS = {False: st.binary(min_size=8, max_size=8), True: st.binary(min_size=20, max_size=20)}


@st.composite
def records(draw: st.DrawFn) -> Record:
    """Return records that can be encoded."""
    sys_flag = draw(st.sampled_from([0, 1, 4, 8, 12, 0x10, 0x20, 0x30, -1]) | integers(32))
    return Record(
        queue_id=draw(st.sampled_from([0, 1]) | integers(32)),
        flag=draw(integers(32)),
        queue_offset=draw(st.integers(0, 4) | integers(64)),
        log_offset=draw(integers(64)),
        sys_flag=sys_flag,
        born_timestamp=draw(integers(64)),
        born_host=draw(HOSTS[bool(sys_flag & 0x10)]),
        store_timestamp=draw(integers(64)),
        store_host=draw(HOSTS[bool(sys_flag & 0x20)]),
        reconsume_times=draw(integers(32)),
        prepared_offset=draw(integers(64)),
        body=draw(st.binary(max_size=40)),
        topic=draw(
            st.sampled_from([b"T", b"SCHEDULE_TOPIC_XXXX", b"t" * 127, b"t" * 128])
            | TEXTS.filter(bool)
        ),
        properties=draw(property_strings()),
    )


@st.composite
def wild_records(draw: st.DrawFn) -> Record:
    """Return records of which some cannot be encoded."""
    record = draw(records())
    changes: dict[str, int | bytes] = {}
    for name in draw(st.lists(st.sampled_from(Record._fields), max_size=2)):
        if isinstance(getattr(record, name), int):
            changes[name] = draw(wild_integers(32) | wild_integers(64))
        else:
            changes[name] = draw(st.binary(max_size=30) | st.just(b"x" * 32768))
    return Record(**(record._asdict() | changes))


@st.composite
def logs(draw: st.DrawFn, log_base: int) -> bytes:
    """Return stretches of a log: records that say where they are, a blank or zeros behind them."""
    log = b""
    for record in draw(st.lists(records(), max_size=5)):
        log += record_on_disk(record._replace(log_offset=log_base + len(log)))
    behind = draw(st.sampled_from([b"", b"", blank_on_disk(30), bytes(9), b"\xda\xa3\x20\xa7"]))
    return log + behind


# -- frames --------------------------------------------------------------------------------------

BLANKS = st.sampled_from(["", "", "", "", " ", "\n", "\t\r ", "\x0b"])
PIECES = st.one_of(
    st.sampled_from(
        [
            "a",
            "TopicTest",
            "KEYS\\u0001k\\u0002",
            "WAIT\\u0001true",
            "\\n",
            "\\/",
            "\\\\",
            '\\"',
            "\\b\\f\\r\\t",
            "\\u00e9",
            "\\u00E9",
            "\u00e9",
            "\u4e2d",
            "\U0001f600",
            "\\ud83d\\ude00",
            "\x7f",
            "\\u0000",
            "0",
            "true",
            " ",
        ]
    ),
    st.sampled_from(
        ["\\ud83d", "\\ude00", "\\ud83dx", "\\x", "\\u12", "\\u+123", "\n", '"', "\\", "\ud800"]
    ),
)
"""What a JSON string is made of; the second half is what it must not be made of."""
ODD_VALUES = st.sampled_from(
    [
        "null",
        "true",
        "false",
        "0",
        "-0",
        "-1",
        "+1",
        "01",
        "1.0",
        "1e3",
        "-",
        "NaN",
        "Infinity",
        "[]",
        "[1]",
        "{}",
        '{"a":1}',
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775808",
        "-9223372036854775809",
        "2147483647",
        "2147483648",
        "-2147483648",
        '""',
        '"TRUE"',
        '"+5"',
        '"-0"',
        '"007"',
        '"1 "',
        '"2147483648"',
        '"\\u0031"',
        '"9223372036854775807"',
        '"\u0661"',
        "tru",
        "nulL",
        "'a'",
        "",
    ]
)


@st.composite
def json_strings(draw: st.DrawFn) -> str:
    """Return strings as they stand in JSON, quotes and all."""
    return '"' + "".join(draw(st.lists(PIECES, max_size=4))) + '"'


def _quoted(value: object) -> str:
    text = str(value).replace("\x01", "\\u0001").replace("\x02", "\\u0002")
    return f'"{text}"'


@st.composite
def json_objects(draw: st.DrawFn, good: Sequence[tuple[str, str]], oddness: int) -> str:
    """Return an object of the good members, some changed, left out, repeated or out of order."""
    members = [(_quoted(name), value) for name, value in good]
    for _ in range(draw(st.integers(0, oddness))):
        at = draw(st.integers(0, len(members) - 1)) if members else 0
        change = draw(st.sampled_from(["odd", "text", "drop", "repeat", "move", "new", "escape"]))
        if change == "new":
            members.insert(at, (draw(json_strings()), draw(ODD_VALUES | json_strings())))
        elif not members:
            continue
        elif change == "odd":
            members[at] = (members[at][0], draw(ODD_VALUES))
        elif change == "text":
            members[at] = (members[at][0], draw(json_strings()))
        elif change == "drop":
            del members[at]
        elif change == "repeat":
            members.append((members[at][0], draw(ODD_VALUES | st.just(members[at][1]))))
        elif change == "move":
            members.insert(0, members.pop(at))
        else:
            name = members[at][0]
            members[at] = (
                f'"\\u{ord(name[1]):04x}{name[2:]}' if len(name) > 2 else name,
                members[at][1],
            )
    blank = draw(BLANKS)
    inner = f"{blank},{blank}".join(f"{name}{blank}:{blank}{value}" for name, value in members)
    return f"{{{blank}{inner}{blank}}}"


def good_fields(code: int) -> dict[str, object]:
    """Return the fields of an ordinary request of one of the hot codes."""
    if code == 11:
        return pull_fields()
    if code == 10:
        return {LONG_NAMES[name]: value for name, value in send_fields().items()}
    return send_fields()


CODES = st.sampled_from([310, 310, 320, 10, 11])


@st.composite
def json_headers(draw: st.DrawFn, oddness: int = 2) -> bytes:
    """Return JSON headers of hot requests, as they should be or not."""
    code = draw(CODES)
    fields = [(name, _quoted(value)) for name, value in good_fields(code).items()]
    ext = draw(json_objects(fields, oddness))
    top = [
        ("code", str(code)),
        ("extFields", ext),
        ("flag", draw(st.sampled_from(["0", "0", "2", "1"]))),
        ("language", '"JAVA"'),
        ("opaque", str(draw(integers(32)))),
        ("version", "399"),
    ]
    text = draw(BLANKS) + draw(json_objects(top, oddness)) + draw(BLANKS)
    return text.encode("utf-8", "surrogatepass")


@st.composite
def binary_headers(draw: st.DrawFn, oddness: int = 2) -> bytes:
    """Return binary headers of hot requests, as they should be or not."""
    code = draw(CODES)
    pairs = [(name.encode(), str(value).encode()) for name, value in good_fields(code).items()]
    for _ in range(draw(st.integers(0, oddness))):
        at = draw(st.integers(0, len(pairs) - 1)) if pairs else 0
        change = draw(st.sampled_from(["value", "drop", "repeat", "new"]))
        if change == "new" or not pairs:
            pairs.insert(at, (draw(TEXTS), draw(TEXTS)))
        elif change == "value":
            pairs[at] = (
                pairs[at][0],
                draw(st.sampled_from([b"", b"1", b"-5", b"x", b"TRUE"]) | TEXTS),
            )
        elif change == "drop":
            del pairs[at]
        else:
            pairs.append((pairs[at][0], draw(TEXTS)))
    return binary_header(
        code,
        pairs,
        opaque=draw(integers(32)),
        flag=draw(st.sampled_from([0, 0, 2, 1, -4])),
        remark=draw(st.just(b"") | TEXTS),
        version=draw(integers(16)),
    )


@st.composite
def batch_bodies(draw: st.DrawFn) -> bytes:
    """Return batch bodies, most of them good."""
    messages = draw(
        st.lists(
            st.tuples(st.binary(min_size=1, max_size=20), property_strings(), integers(32)),
            max_size=4,
        )
    )
    body = b"".join(inner_message(raw, own, flag=flag) for raw, own, flag in messages)
    return body if draw(st.integers(0, 3)) else draw(spoiled(st.just(body)))


@st.composite
def send_frames(draw: st.DrawFn) -> bytes:
    """Return sends to the topics `TopicTest` and `Other`, most of them ordinary."""
    is_batch = draw(st.booleans())
    fields = send_fields(
        b=draw(st.sampled_from(["TopicTest", "TopicTest", "Other", "Third"])),
        e=draw(st.sampled_from(["0", "1", "0", "2", "-1"])),
        f=draw(st.sampled_from(["0", "0", "1", "257", "1793", "4", "16"])),
        h=str(draw(integers(32))),
        j=str(draw(st.integers(0, 3))),
        m="true" if is_batch else "false",
    )
    given = draw(property_strings()).decode("utf-8", "replace")
    fields["i"] = given if draw(st.booleans()) else "WAIT\x01true\x02TAGS\x01a"
    body = draw(batch_bodies() if is_batch else st.binary(max_size=60))
    opaque, flag = draw(integers(32)), draw(st.sampled_from([0, 0, 0, 2]))
    if draw(st.booleans()):
        pairs = [(name.encode(), str(value).encode()) for name, value in fields.items()]
        return frame(binary_header(310, pairs, opaque=opaque, flag=flag), body, 1)
    header = {"code": 310, "extFields": fields, "flag": flag, "opaque": opaque, "version": 399}
    return frame(json.dumps(header).encode(), body)
