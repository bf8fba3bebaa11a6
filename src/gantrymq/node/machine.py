"""What a process must know of the machine that it runs on."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import socket
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from gantrymq.errors import InvalidValue

log = logging.getLogger(__name__)

IP_V6: Final = 6
FILES_MAX: Final = 1 << 20
"""Open files that are taken; what a system without a limit says is no number."""


def own_address(bind_address: str = "") -> str:
    """Return the address that others on the network most likely reach this machine by.

    It is one that a listener at all addresses of a family has. No packet is sent: connecting a
    datagram socket only asks the routing table.
    """
    is_v6 = ":" in bind_address
    family = socket.AF_INET6 if is_v6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(("2001:db8::1" if is_v6 else "192.0.2.1", 9))
            found = str(probe.getsockname()[0])
    except OSError:
        return loopback(bind_address)
    return f"[{found}]" if is_v6 else found


def loopback(bind_address: str) -> str:
    """Return by which host this machine reaches a listener of its own."""
    return bound_address(bind_address) or ("[::1]" if ":" in bind_address else "127.0.0.1")


def bound_address(bind_address: str) -> str:
    """Return the only address that a listener can be reached by; "" if it listens at all of them.

    A name is as good as an address: whoever uses it has it looked up.
    """
    try:
        address = ip_address(bind_address.strip("[]"))
    except ValueError:
        return bind_address
    if address.is_unspecified:
        return ""
    return f"[{address}]" if address.version == IP_V6 else str(address)


def host_name() -> str:
    """Return the machine's name: the default of a broker's."""
    return socket.gethostname() or "gantrymq"


def memory_bytes() -> int:
    """Return how much memory the machine has; 0 where it cannot be asked."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


async def resolved(host: str) -> str:
    """Return the address of a host that is given by address or by name.

    Raises:
        InvalidValue: the name has no address.
    """
    try:
        return str(ip_address(host.strip("[]")))
    except ValueError:
        pass
    loop = asyncio.get_running_loop()
    try:
        found = await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        raise InvalidValue(
            f"brokerIP1 is {host[:64]!r}, which is no address and no name of one: {error}"
        ) from None
    # Records are shorter with IPv4, and older clients read no other.
    found.sort(key=lambda one: one[0] != socket.AF_INET)
    return str(ip_address(str(found[0][4][0]).partition("%")[0]))


def take_all_files() -> int:
    """Let this process open as many files as it may; return how many that are.

    A shell gives a thousand, for programs that use `select`. Every client is one, and so is every
    file of the store; Java's machine does the same for Apache's servers.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES_MAX if hard == resource.RLIM_INFINITY else min(hard, FILES_MAX)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:  # some systems have a bound beside the one they tell
        log.info("the limit of open files stays %d: %s", soft, error)
        return soft
    return wanted


def boot_id() -> str:
    """Return what names the time since the machine was started; "" where the system does not."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""
