"""Send hooks: code of your own that sees every send, before it is stored and after.

A hook is any object with the two methods of `SendHook`. `before` may refuse a send by raising a
`ResponseError`: its code and remark are what the producer gets. What `after` raises is logged and
changes nothing. While there is a hook, every send takes the way of policy: ordinary ones cost some
30 us more.

Owned by the event loop's task; a hook must not block.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from gantrymq.errors import InvalidValue
from gantrymq.wire.command import Command
from gantrymq.wire.response_errors import ResponseError

if TYPE_CHECKING:
    from gantrymq.kernel.values import SendRequest
    from gantrymq.wire.peer import Answer, Peer

log = logging.getLogger(__name__)

HOOKS_MAX: Final = 16


@dataclass(slots=True)
class SendContext:
    """What a hook sees; what stands below `code` is known afterwards."""

    producer_group: str
    topic: str
    queue_id: int
    body_bytes: int
    properties: bytes
    is_batch: bool
    client: str
    """`host:port` of the sender."""
    code: int | None = None
    """The response code; None before, and for a oneway send."""
    remark: str = ""
    message_id: str = ""
    """Offset id; those of a batch joined by commas."""
    queue_offset: int = -1


class SendHook(Protocol):
    """Sees sends; `name` is for the log."""

    @property
    def name(self) -> str:
        """Return what the log calls it."""
        ...

    def before(self, context: SendContext) -> None:
        """Look at a send that is about to be stored; raise ResponseError to refuse it."""
        ...

    def after(self, context: SendContext) -> None:
        """Look at how it went."""
        ...


class SendHooks:
    """The hooks of a broker, in the order they were given."""

    def __init__(self) -> None:
        self._hooks: list[SendHook] = []

    def __bool__(self) -> bool:
        """Tell whether there is any."""
        return bool(self._hooks)

    def add(self, hook: SendHook) -> None:
        """Let a hook see every send from now on.

        Raises:
            InvalidValue: there are too many.
        """
        if len(self._hooks) >= HOOKS_MAX:
            raise InvalidValue(f"there are {HOOKS_MAX} send hooks already; join some of them")
        self._hooks.append(hook)

    def before(self, request: SendRequest, peer: Peer) -> SendContext:
        """Show a send to all hooks; return what they see.

        Raises:
            ResponseError: one of them refuses it.
        """
        context = SendContext(
            request.producer_group,
            request.topic,
            request.queue_id,
            request.body_end - request.body_start,
            request.properties,
            request.batch,
            peer.address,
        )
        for hook in self._hooks:
            try:
                hook.before(context)
            except ResponseError:
                raise
            except Exception:
                log.exception("send hook %s failed; the send goes on", hook.name)
        return context

    def after(self, context: SendContext, answer: Answer) -> None:
        """Show all hooks how a send went."""
        if isinstance(answer, Command):
            context.code = answer.code
            context.remark = answer.remark or ""
            context.message_id = answer.fields.get("msgId", "")
            context.queue_offset = int(answer.fields.get("queueOffset", "-1"))
            context.queue_id = int(answer.fields.get("queueId", context.queue_id))
        for hook in self._hooks:
            try:
                hook.after(context)
            except Exception:
                log.exception("send hook %s failed", hook.name)
