"""The frame of a send, of which most is the same for every message to one queue.

    total | type, size | code .. version | opaque | flag | 0 | size of fields |
    the fields that stay | g: born time | i: properties | [Signature] | body

Only what changes is packed for a message. The header is binary, in which a field stands by itself;
`JsonSendFrame` is the same for a server that must have JSON, and costs what a general request does.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from gantrymq.errors import InvalidValue
from gantrymq.kernel.values import SendAnswer
from gantrymq.limits import FRAME_BYTES_MAX
from gantrymq.wire.codes import SPOKEN_VERSION, LanguageCode
from gantrymq.wire.command import BINARY_HEADER, Command
from gantrymq.wire.frame import encode_frame

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Sign = Callable[[bytes], str]

__all__ = ["JsonSendFrame", "SendAnswer", "SendFrame", "SendFrames"]

_FIXED_BYTES: Final = 21
_NAME: Final = struct.Struct(">h")
_SIZE: Final = struct.Struct(">I")
_START: Final = struct.Struct(">hBh")
_BORN: Final = b"\x00\x01g"
_PROPERTIES: Final = b"\x00\x01i"
_SIGNATURE: Final = b"\x00\x09Signature"
_TYPE: Final = BINARY_HEADER << 24
_CHANGING: Final = frozenset({"g", "i", "Signature"})
_ONEWAY: Final = 2
SHAPES_MAX: Final = 256
"""Pairs of lengths that a frame remembers the form of."""


class SendFrames(Protocol):
    """What makes the frames of sends to one queue."""

    def build(
        self, opaque: int, born_ms: bytes, properties: bytes, body: bytes, *, oneway: bool = False
    ) -> bytes:
        """Return the frame of one message.

        Raises:
            InvalidValue: it is larger than a peer accepts.
        """
        ...


class _Shape(NamedTuple):
    """All headers whose born time and properties have the same lengths: where everything stands."""

    pack: Callable[..., bytes]
    total: int
    """Length of the frame without its body, its own four bytes not counted."""
    word: int
    """Serialization and length of the header."""
    lengths: bytes
    """Of the remark, which is none, and of the fields."""
    properties: bytes
    """Name and length of the properties."""
    fields: bytes
    """Those that stay, then name and length of the born time."""


class SendFrame:
    """A send with a binary header."""

    __slots__ = ("_fields", "_parts", "_shapes", "_sign", "_start")

    def __init__(self, code: int, fields: Mapping[str, str], sign: Sign | None = None) -> None:
        """Take the fields that stay; `g` and `i` are given with each message.

        With `sign` they include those that the signature wants, except for itself.
        """
        self._start = _START.pack(code, int(LanguageCode.PYTHON), int(SPOKEN_VERSION))
        self._sign = sign
        staying = {name: value for name, value in fields.items() if name not in _CHANGING and value}
        self._fields = b"".join(
            _NAME.pack(len(name)) + name.encode() + _SIZE.pack(len(value)) + value
            for name, value in ((name, value.encode()) for name, value in staying.items())
        )
        # What is signed, in the order of the names, around the two that change.
        names = sorted(staying)
        self._parts = tuple(
            "".join(staying[name] for name in names if low < name < high).encode()
            for low, high in (("", "g"), ("g", "i"), ("i", "~"))
        )
        self._shapes: dict[tuple[int, int], _Shape] = {}

    def build(
        self, opaque: int, born_ms: bytes, properties: bytes, body: bytes, *, oneway: bool = False
    ) -> bytes:
        """Return the frame of one message.

        Raises:
            InvalidValue: it is larger than a peer accepts.
        """
        lengths = len(born_ms), len(properties)
        shape = self._shapes.get(lengths) or self._add_shape(*lengths)
        if self._sign is not None:
            # A signature makes the fields longer, and is different each time.
            entry = self._signature(born_ms, properties, body)
            shape = self._shape(entry + self._fields, *lengths)
        pack, total, word, sizes, property_head, fields = shape
        total += len(body)
        if total + 4 > FRAME_BYTES_MAX:
            raise InvalidValue(
                f"a frame of {total + 4} bytes; at most {FRAME_BYTES_MAX} are accepted"
            )
        flag = _ONEWAY if oneway else 0
        head = pack(
            total, word, self._start, opaque, flag, sizes, fields, born_ms, property_head,
            properties,
        )  # fmt: skip
        return head + body

    def _add_shape(self, born_bytes: int, property_bytes: int) -> _Shape:
        if len(self._shapes) >= SHAPES_MAX:
            self._shapes.clear()
        shape = self._shape(self._fields, born_bytes, property_bytes)
        self._shapes[born_bytes, property_bytes] = shape
        return shape

    @staticmethod
    def _shape(fields: bytes, born_bytes: int, property_bytes: int) -> _Shape:
        fields += _BORN + _SIZE.pack(born_bytes)
        property_head = _PROPERTIES + _SIZE.pack(property_bytes)
        area = len(fields) + born_bytes + len(property_head) + property_bytes
        form = f">II5sii8s{len(fields)}s{born_bytes}s{len(property_head)}s{property_bytes}s"
        return _Shape(
            struct.Struct(form).pack,
            4 + _FIXED_BYTES + area,
            _TYPE | _FIXED_BYTES + area,
            _SIZE.pack(0) + _SIZE.pack(area),
            property_head,
            fields,
        )

    def _signature(self, born_ms: bytes, properties: bytes, body: bytes) -> bytes:
        before, between, behind = self._parts
        content = b"".join((before, born_ms, between, properties, behind, body))
        signature = self._sign(content).encode() if self._sign is not None else b""
        return _SIGNATURE + _SIZE.pack(len(signature)) + signature


class JsonSendFrame:
    """A send with a JSON header."""

    __slots__ = ("_code", "_fields", "_signed")

    def __init__(
        self,
        code: int,
        fields: Mapping[str, str],
        signed: Callable[[Mapping[str, str], bytes], Mapping[str, str]] | None = None,
    ) -> None:
        """Take the fields that stay; `signed` adds those that prove who sends it."""
        self._code = code
        self._fields = dict(fields)
        self._signed = signed

    def build(
        self, opaque: int, born_ms: bytes, properties: bytes, body: bytes, *, oneway: bool = False
    ) -> bytes:
        """Return the frame of one message.

        Raises:
            InvalidValue: it is larger than a peer accepts.
        """
        fields: Mapping[str, str]
        fields = {**self._fields, "g": born_ms.decode(), "i": properties.decode()}
        if self._signed is not None:
            fields = self._signed(fields, body)
        return encode_frame(Command.request(self._code, opaque, fields, body, oneway=oneway))
