"""Dead letters, put where a broker would put them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from gantrymq.admin.sending import Copier
from gantrymq.admin.session import Session
from gantrymq.client.outgoing import Outgoing
from gantrymq.wire.batch import BatchMessage, encode_batch
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.properties import encode_properties

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.shell import Shell


async def _die(
    name_server: str, group: str, topic: str, count: int, batch: int = 500, **more: str
) -> None:
    """Put dead letters where a broker would; each batch goes to the next queue."""
    padded = int(more.get("pad", "0"))
    async with Session(name_server) as session, Copier(session) as copier:
        sending = copier._sending
        for begin in range(0, count, batch):
            entries = [
                BatchMessage(0, (b"letter %d" % number).ljust(padded), encode_properties({
                    "UNIQ_KEY": f"{group}-{number}", "RETRY_TOPIC": topic, "TAGS": f"t{number % 2}",
                    **more,
                }))
                for number in range(begin, min(begin + batch, count))
            ]  # fmt: skip
            ids = ",".join(str(number) for number in range(len(entries)))
            code = int(RequestCode.SEND_BATCH_MESSAGE)
            made = Outgoing(f"%DLQ%{group}", ids, b"", encode_batch(entries), code=code)
            await sending.send(made, None, sending.deadline(10))


def prepare(
    shell: Shell,
    group: str,
    topic: str,
    count: int,
    queues: int = 1,
    properties: Mapping[str, str] | None = None,
    batch: int = 500,
) -> None:
    shell.well("topic", "create", topic, "--queues", "2")
    shell.well("group", "create", group)
    shell.well("topic", "create", f"%DLQ%{group}", "--queues", str(queues))
    batch = min(count // queues, batch)
    asyncio.run(_die(shell.server.name_server, group, topic, count, batch, **(properties or {})))
