"""Clients that speak TLS, with a context of the caller's."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest

from gantrymq import NoRoute, NoRouteCause, Producer, PushConsumer
from support.targets import CERTIFICATE

if TYPE_CHECKING:
    from support.targets import Target
    from support.transport import Run


def test_messages_go_both_ways_over_tls(target: Target, run: Run) -> None:
    topic = target.create_topic(target.name("tls"), 1)

    async def main() -> None:
        trusting = ssl.create_default_context(cafile=CERTIFICATE)
        trusting.check_hostname = False  # its name is not that of a test's address
        async with Producer(target.namesrv, ssl=trusting) as producer:
            assert (await producer.send(topic, b"over TLS")).is_ok
        consumer = PushConsumer(target.namesrv, target.name("tls"), start="first", ssl=trusting)
        consumer.subscribe(topic)
        async with consumer:
            async for message in consumer:
                assert message.body == b"over TLS"
                break

    run(main())


def test_a_certificate_that_nobody_vouches_for_is_refused(target: Target, run: Run) -> None:
    async def main() -> None:
        async with Producer(target.namesrv, ssl=ssl.create_default_context()) as producer:
            with pytest.raises(NoRoute, match="certificate verify failed") as caught:
                await producer.send("T", b"x")
            assert caught.value.cause is NoRouteCause.NO_NAME_SERVER

    run(main())
