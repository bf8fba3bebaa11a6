"""Where servers live: network namespaces with cables that can be cut, or all on the loopback.

    clients            10.x.y.254, on a bridge
    servers            10.x.y.1, .2, ...   each in a namespace of its own, behind a cable

`x` and `y` come from the process id, so that two suites may run on one machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from chaos.cable import open_device
from support.partitions import problem as namespace_problem

if TYPE_CHECKING:
    from collections.abc import Sequence

CLIENTS: Final = 254
CABLE: Final = Path(__file__).with_name("cable.py")
COMMAND_S_MAX: Final = 20


def ip(*arguments: str) -> None:
    """Run ip(8)."""
    subprocess.run(
        [shutil.which("ip") or "ip", *arguments],
        check=True, capture_output=True, text=True, timeout=COMMAND_S_MAX,
    )  # fmt: skip


def problem() -> str | None:
    """Return why links cannot be cut here, or None."""
    why = namespace_problem()
    if why is None and not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "there is no /dev/net/tun to make a cable of"
    return why


class Link:
    """A server's place in the network; on the loopback nothing can be done to it."""

    def __init__(self, host: str, inside: Sequence[str] = (), space: str = "") -> None:
        self.host = host
        self.inside = inside
        """The command that starts a program there."""
        self._space = space
        self._cable: subprocess.Popen[str] | None = None
        self._holes: set[str] = set()

    @property
    def can_be_cut(self) -> bool:
        """Say whether it has a cable."""
        return self._cable is not None

    def plug_in(self, outer: int) -> None:
        """Put a cable between the device behind `outer` and the namespace."""
        command = [*self.inside, sys.executable, "-S", str(CABLE), str(outer), "eth0"]
        self._cable = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=(outer,), text=True
        )
        if self._cable.stdout is None or self._cable.stdout.readline() != "ready\n":
            raise RuntimeError(f"the cable of {self.host} does not work")

    def unplug(self) -> None:
        """End the cable's program."""
        if self._cable is not None:
            self._cable.kill()
            self._cable.communicate()
            self._cable = None

    def order(
        self,
        *,
        loss: float = 0.0,
        delay_s: float = 0.0,
        is_in: bool = True,
        is_out: bool = True,
    ) -> None:
        """Say how the cable is to be; without arguments it is a good one."""
        if self._cable is not None and self._cable.stdin is not None:
            self._cable.stdin.write(f"{loss} {delay_s} {int(is_in)} {int(is_out)}\n")
            self._cable.stdin.flush()

    def part_from(self, others: Sequence[Link]) -> None:
        """Reach these servers no more, nor be reached by them; clients go on."""
        for other in others:
            if other.host not in self._holes and self._space:
                ip("-n", self._space, "route", "add", "blackhole", f"{other.host}/32")
                self._holes.add(other.host)

    def mend(self) -> None:
        """Undo all of it."""
        self.order()
        for host in sorted(self._holes):
            with suppress(subprocess.SubprocessError):
                ip("-n", self._space, "route", "del", "blackhole", f"{host}/32")
        self._holes.clear()


class Network:
    """All links, until the stack is closed."""

    def __init__(self, stack: ExitStack, *, namespaces: bool) -> None:
        self._stack = stack
        self._tag = f"c{os.getpid() % 1_000_000}"
        self._net = f"10.{214 + os.getpid() % 40}.{os.getpid() // 40 % 250}" if namespaces else ""
        self._count = 0
        self.client_host = f"{self._net}.{CLIENTS}" if namespaces else "127.0.0.1"
        if namespaces:
            stack.callback(_try_ip, "link", "del", f"{self._tag}br")
            ip("link", "add", f"{self._tag}br", "type", "bridge")
            ip("addr", "add", f"{self.client_host}/24", "dev", f"{self._tag}br")
            ip("link", "set", f"{self._tag}br", "up")

    def link(self) -> Link:
        """Make a place for one more server."""
        if not self._net:
            return Link("127.0.0.1")
        self._count += 1
        number, space = self._count, f"{self._tag}n{self._count}"
        self._stack.callback(_try_ip, "netns", "del", space)
        ip("netns", "add", space)
        link = Link(f"{self._net}.{number}", ("ip", "netns", "exec", space), space)
        self._stack.callback(link.unplug)
        outer = open_device(f"{self._tag}t{number}")
        try:
            link.plug_in(outer)
        finally:
            os.close(outer)
        ip("link", "set", f"{self._tag}t{number}", "master", f"{self._tag}br", "up")
        ip("-n", space, "link", "set", "lo", "up")
        ip("-n", space, "addr", "add", f"{link.host}/24", "dev", "eth0")
        ip("-n", space, "link", "set", "eth0", "up")
        return link


def _try_ip(*arguments: str) -> None:
    with suppress(subprocess.SubprocessError, OSError):
        ip(*arguments)
