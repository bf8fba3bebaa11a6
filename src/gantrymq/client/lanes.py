"""What a producer keeps for each topic: its queues in turn, and a frame half made for each of them.

    topic ─▶ lane ─▶ targets, one for each queue that may be written
                       └─ queue, address, connection, frames that only want their message

A lane follows its topic's route: it is made anew when that has changed. Owned by the event loop's
thread.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Final

from gantrymq.client.remote import vip_address
from gantrymq.client.route import TEMPLATE_QUEUES
from gantrymq.model.names import TEMPLATE_TOPIC, is_retry_topic
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.send_frame import JsonSendFrame, SendFrame
from gantrymq.wire.signing import ACCESS_KEY, SECURITY_TOKEN, signature, signed_fields

if TYPE_CHECKING:
    from gantrymq.client.faults import Faults
    from gantrymq.client.route import Route
    from gantrymq.client.settings import ClientSettings
    from gantrymq.model.queue import MessageQueue
    from gantrymq.transport.client_connection import ClientConnection
    from gantrymq.wire.send_frame import SendFrames

RETRIES_MAX: Final = 16
FRAMES_MAX: Final = 64
"""Kinds of frames that are kept for a queue: compressed or not, flags that the user sets."""


class FrameKind:
    """What is the same for all frames of one producer."""

    __slots__ = ("_group", "_settings")

    def __init__(self, group: str, settings: ClientSettings) -> None:
        self._group = group
        self._settings = settings

    @property
    def uses_vip(self) -> bool:
        """Tell whether sends go to the second port."""
        return self._settings.vip

    def frame(self, queue: MessageQueue, code: int, sys_flag: int, flag: int) -> SendFrames:
        """Return what makes frames for a queue."""
        fields = {
            "a": self._group,
            "b": queue.topic,
            "c": TEMPLATE_TOPIC,
            "d": str(TEMPLATE_QUEUES),
            "e": str(queue.queue_id),
            "f": str(sys_flag),
            "h": str(flag),
            "j": "0",
            "k": "false",
            "m": "true" if code == RequestCode.SEND_BATCH_MESSAGE else "false",
            "n": queue.broker_name,
        }
        if is_retry_topic(queue.topic):
            # Who sends to one means the group, and not its dead letters: whatever its limit is.
            fields["l"] = str(RETRIES_MAX)
        credentials = self._settings.credentials
        if not self._settings.binary_headers:
            if credentials is None:
                return JsonSendFrame(code, fields)
            return JsonSendFrame(
                code, fields, lambda given, body: signed_fields(credentials, given, body)
            )
        if credentials is None:
            return SendFrame(code, fields)
        fields[ACCESS_KEY] = credentials.access_key
        if credentials.security_token:
            fields[SECURITY_TOKEN] = credentials.security_token
        secret_key = credentials.secret_key
        return SendFrame(code, fields, lambda content: signature(secret_key, content))


class Broker:
    """Where messages are sent: an address, and the connection to it."""

    __slots__ = ("address", "connection", "name")

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.connection: ClientConnection | None = None
        """The one that was used last; it may be closed."""


class Target:
    """One queue that messages can be sent to."""

    __slots__ = ("_frames", "_kind", "broker", "plain", "queue")

    def __init__(self, queue: MessageQueue, broker: Broker, kind: FrameKind) -> None:
        self.queue = queue
        self.broker = broker
        self._kind = kind
        self.plain = kind.frame(queue, int(RequestCode.SEND_MESSAGE_V2), 0, 0)
        """Makes frames of ordinary messages without any flag."""
        self._frames: dict[tuple[int, int, int], SendFrames] = {}

    def frames(self, code: int, sys_flag: int, flag: int) -> SendFrames:
        """Return what makes frames with these flags."""
        key = code, sys_flag, flag
        found = self._frames.get(key)
        if found is None:
            if len(self._frames) >= FRAMES_MAX:
                self._frames.clear()
            found = self._frames[key] = self._kind.frame(self.queue, *key)
        return found


class Lane:
    """The queues of one topic, which take turns."""

    __slots__ = ("_at", "_by_queue", "_faults", "route", "targets", "version")

    def __init__(self, route: Route, version: int, kind: FrameKind, faults: Faults | None) -> None:
        """Raises NoRoute for a route with nothing to write to."""
        route.check_writable()
        self.route = route
        self.version = version
        """Of all routes, when the lane was last seen to be up to date."""
        self.targets: list[Target] = []
        brokers: dict[str, Broker] = {}
        for queue in route.write_queues:
            address = route.address(queue.broker_name)
            if address is None:
                continue
            if queue.broker_name not in brokers:
                to = vip_address(address) if kind.uses_vip else address
                brokers[queue.broker_name] = Broker(queue.broker_name, to)
            self.targets.append(Target(queue, brokers[queue.broker_name], kind))
        self._by_queue = {target.queue: target for target in self.targets}
        self._faults = faults
        # Many producers that start at once must not all begin with the same queue.
        self._at = random.randrange(len(self.targets))  # noqa: S311

    def next(self, avoid: str | None = None) -> Target:
        """Return the queue whose turn it is, of another broker than `avoid` if there is one."""
        targets = self.targets
        count = len(targets)
        at = self._at = (self._at + 1) % count
        if self._faults is None and avoid is None:
            return targets[at]
        for step in range(count):
            target = targets[(at + step) % count]
            name = target.broker.name
            if name != avoid and (self._faults is None or self._faults.is_usable(name)):
                self._at = (at + step) % count
                return target
        # Every other broker is slow too: then rather a slow one than the one that just failed.
        others = (target for target in targets if target.broker.name != avoid)
        return next(others, targets[at])

    def target(self, queue: MessageQueue) -> Target | None:
        """Return the target of one queue, if messages can be sent to it."""
        return self._by_queue.get(queue)
