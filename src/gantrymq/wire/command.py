"""One remoting command: a request or a response, as a value.

`fields` is what handlers read. A binary header can say more than a dict can hold: the same key
twice (a Java producer with an ACL hook writes its fields, then the signed copy of them; the last
one counts), or a key with an empty value, which means null. `wire_pairs` keeps such a header's
pairs as they came, so that it can be written again byte for byte; it is None whenever `fields`
says it all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from gantrymq.errors import InvalidValue, shown
from gantrymq.kernel.values import BINARY_HEADER, JSON_HEADER
from gantrymq.wire.codes import SPOKEN_VERSION, LanguageCode, ResponseCode
from gantrymq.wire.integers import fits

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["BINARY_HEADER", "JSON_HEADER", "Command", "check_encodable", "ext_place"]

_RESPONSE: Final = 1
_ONEWAY: Final = 2


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A request or a response."""

    code: int
    """A `RequestCode`, or a `ResponseCode` in a response; any number can arrive."""
    opaque: int
    """Chosen by the requester, repeated in the response."""
    flag: int = 0
    version: int = SPOKEN_VERSION
    language: int | str = LanguageCode.PYTHON
    """A `LanguageCode`; the ordinal or the name as it came where that is not known."""
    remark: str | None = None
    fields: dict[str, str] = msgspec.field(default_factory=dict)
    body: bytes = b""
    serialize_type: int = JSON_HEADER
    wire_pairs: tuple[tuple[str, str], ...] | None = None

    @property
    def is_response(self) -> bool:
        """Say whether this answers a request."""
        return bool(self.flag & _RESPONSE)

    @property
    def is_oneway(self) -> bool:
        """Say whether the sender wants no answer."""
        return bool(self.flag & _ONEWAY)

    @classmethod
    def request(
        cls,
        code: int,
        opaque: int,
        fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        oneway: bool = False,
        remark: str | None = None,
        version: int = SPOKEN_VERSION,
        serialize_type: int = JSON_HEADER,
    ) -> Command:
        """Return a request of ours."""
        return cls(
            code=code,
            opaque=opaque,
            flag=_ONEWAY if oneway else 0,
            version=version,
            remark=remark,
            fields=dict(fields or {}),
            body=body,
            serialize_type=serialize_type,
        )

    def response(
        self,
        code: int = ResponseCode.SUCCESS,
        fields: Mapping[str, str] | None = None,
        body: bytes = b"",
        *,
        remark: str | None = None,
        version: int = SPOKEN_VERSION,
    ) -> Command:
        """Return our response to this request, in the serialization the peer itself uses."""
        return Command(
            code=code,
            opaque=self.opaque,
            flag=_RESPONSE,
            version=version,
            remark=remark,
            fields=dict(fields or {}),
            body=body,
            serialize_type=self.serialize_type,
        )

    def with_fields(self, fields: Mapping[str, str]) -> Command:
        """Return the same command with other fields."""
        return msgspec.structs.replace(self, fields=dict(fields), wire_pairs=None)


def check_encodable(command: Command) -> None:
    """Refuse what a peer could not read, whatever the serialization.

    Raises InvalidValue naming a number that is not one of 32 bits, or a field that is not text: a
    caller that is not type-checked may give anything.
    """
    for name in ("code", "opaque", "flag", "version"):
        number: object = getattr(command, name)
        if not fits(number, 32):
            raise InvalidValue(f"{name}: {shown(repr(number))} is not a 32-bit integer")
    pairs = command.fields.items() if command.wire_pairs is None else command.wire_pairs
    for key, value in pairs:
        if not (isinstance(key, str) and isinstance(value, str)):
            raise InvalidValue(f"{ext_place(str(key))}: {shown(repr(value))} is not text")
    remark: object = command.remark
    if not (remark is None or isinstance(remark, str)):
        raise InvalidValue(f"remark: {shown(repr(remark))} is not text")


def ext_place(key: str) -> str:
    """Return where an ext field stands, for an error; a peer's long key is cut."""
    return f"header.extFields.{shown(key)}"
