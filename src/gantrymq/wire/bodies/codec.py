"""What turns the bytes of a body into a value and back: one object for each kind of body."""

from typing import Final, Generic, Protocol, TypeVar, cast

from gantrymq.errors import ContentError, InvalidValue
from gantrymq.wire import fastjson
from gantrymq.wire.bodies.reading import read
from gantrymq.wire.bodies.writing import writer_of

T = TypeVar("T")


class Codec(Protocol[T]):
    """A kind of body."""

    def decode(self, body: bytes) -> T:
        """Return the value, or raise `ContentError` naming the field."""
        ...

    def encode(self, value: T) -> bytes:
        """Return bytes that every known client reads."""
        ...


class JsonBody(Generic[T]):
    """A body that is JSON, or what fastjson takes for it."""

    __slots__ = ("_field", "_kind")

    def __init__(self, kind: type[T], field: str = "body") -> None:
        self._kind = kind
        self._field = field

    def __repr__(self) -> str:
        """Name the type for test ids and error texts."""
        return f"JsonBody({self._kind!r})"

    def decode(self, body: bytes) -> T:
        """Return the value.

        Raises:
            ContentError: it is not JSON, or not of this type; names the field.
        """
        return cast("T", read(self._kind, fastjson.parse(body, self._field), self._field))

    def encode(self, value: T) -> bytes:
        """Return the value as strict, compact JSON.

        Raises:
            InvalidValue: a text in it cannot be encoded.
        """
        kind: object = self._kind
        return fastjson.encode(writer_of(kind)(value))


class TextBody:
    """A body that is plain text."""

    __slots__ = ()

    def decode(self, body: bytes) -> str:
        """Return the text.

        Raises:
            ContentError: it is not UTF-8.
        """
        try:
            return body.decode()
        except UnicodeDecodeError as error:
            raise ContentError("body", f"not UTF-8 at byte {error.start}") from None

    def encode(self, value: str) -> bytes:
        """Return the bytes of the text.

        Raises:
            InvalidValue: it is not Unicode.
        """
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise InvalidValue(f"text that is not Unicode: {error}") from None


class OpaqueBody:
    """A body that this layer hands on as it is; the name says who reads it."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        """Return the name."""
        return self.name

    def decode(self, body: bytes) -> bytes:
        """Return the bytes."""
        return body

    def encode(self, value: bytes) -> bytes:
        """Return the bytes."""
        return value


RECORDS: Final = OpaqueBody("RECORDS")
"""Message records back to back, as they are in the commit log: `wire.record` reads them."""
RAW: Final = OpaqueBody("RAW")
"""An application's bytes, or a batch of messages: the send path reads them."""
TEXT: Final = TextBody()
