"""Hosts as records and headers spell them: address bytes and a 4-byte port, or `address:port`."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Final

from gantrymq.errors import InvalidValue, RecordError
from gantrymq.model.message import Host

HOST_V4_BYTES: Final = 8
HOST_V6_BYTES: Final = 20


def is_loopback(host: str) -> bool:
    """Tell whether an address is this machine's own; of names it is localhost alone."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def encode_host(host: Host) -> bytes:
    """Return the 8 or 20 bytes of a host in a record."""
    return host.packed + host.port.to_bytes(4)


def decode_host(data: bytes, place: str) -> Host:
    """Return the host in a record; `place` names it in an error.

    Raises RecordError for another length, or for a number that is no port.
    """
    if len(data) not in {HOST_V4_BYTES, HOST_V6_BYTES}:
        raise RecordError(place, f"has {len(data)} bytes, not 8 or 20")
    try:
        return Host(str(ip_address(data[:-4])), int.from_bytes(data[-4:], signed=True))
    except InvalidValue as error:
        raise RecordError(place, str(error)) from error


def parse_host(text: str) -> Host:
    """Read `address:port`; an IPv6 address may stand in brackets, or bare as Java writes it.

    Raises InvalidValue for anything else.
    """
    address, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdecimal() or len(port) > 5:
        raise InvalidValue(f"{text[:64]!r} is not address:port")
    if address.startswith("[") and address.endswith("]"):
        address = address[1:-1]
    try:
        canonical = str(ip_address(address))
    except ValueError as error:
        raise InvalidValue(f"{text[:64]!r} is not address:port: {error}") from error
    return Host(canonical, int(port))
