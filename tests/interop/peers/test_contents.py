"""Every client sends, every client receives, and nothing about a message has changed on the way.

All senders with all receivers at once: each program has a producer and a consumer of everything, so
that a body of one language is read in all others.
"""

from __future__ import annotations

import base64
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest

from interop.peers import scenarios
from interop.peers.clients import OURS, command_of
from interop.peers.scenarios import RECEIVE_SECONDS_MAX, World
from support import gantry, peers

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from interop.peers.scenarios import Consumer
    from support.peers import Message

CLIENTS: Final = ("java-4.9.7", "java-4.9.7-binary", "java-5.5.0", "java-5.5.0-binary",
                  "go", "node", "cpp", OURS)  # fmt: skip
BODIES: Final = {
    "text": b"plain",
    "other letters": "é ß 消息 Привет ☃ 𝄞".encode(),
    "quotes and ends of lines": b'{"a": "\\"b\\\\",\r\n\t}\n',
    "one byte": b"x",
    "a blank": b" ",
    "a zero": b"\0",
    "zeros": bytes(64),
    "every byte": bytes(range(256)),
    "no text": b"\xff\xfe\x80\xc3(\xed\xa0\x80",
    "what looks like properties": b"KEYS\x01k\x02TAGS\x01t\x02",
    "long enough to be compressed": b"again and again " * 1000,
    "what cannot be compressed": Random(1).randbytes(200_000),
    "large": Random(2).randbytes(1 << 19) * 2,
}
PROPERTIES: Final = {
    "shape": "round",
    "letters": "é 消息 ☃ 𝄞",
    "blanks": " a  b ",
    "signs": "a=b;c:d,\"e\"'f'{}\\",
    "long": "v" * 2000,
    "имя": "name in other letters",
}
TAG: Final = "étiquette-消"


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[dict[str, World]]:
    """Start a server and every client; yield a world for each."""
    commands = {name: command_of(name) for name in CLIENTS}
    with ExitStack() as stack:
        server = stack.enter_context(gantry.server(tmp_path / "server", scenarios.SETTINGS))
        yield {
            name: World(
                stack.enter_context(
                    peers.running(command, server.name_server, tmp_path / f"{place}")
                ),
                server.name_server,
                server.port,
                f"contents-{place}",
            )
            for place, (name, command) in enumerate(commands.items())
        }


def messages_of(sender: str) -> list[Message]:
    """Return what a client is to send: every body, told apart by its keys."""
    return [
        {
            "base64": base64.b64encode(body).decode(),
            "tag": TAG,
            "keys": f"{sender}/{name.replace(' ', '-')} ключ",
            "properties": PROPERTIES,
        }
        for name, body in BODIES.items()
    ]


def test_every_client_reads_what_every_client_wrote(worlds: dict[str, World]) -> None:
    first = worlds[CLIENTS[0]]
    topic = first.topic()
    consumers = {
        name: world.consumer(topic, show=[*PROPERTIES], raw=True) for name, world in worlds.items()
    }
    sent: dict[str, dict[str, Any]] = {}
    for name, world in worlds.items():
        given = messages_of(name)
        for message, told in zip(given, world.send(topic, given), strict=True):
            sent[str(message["keys"])] = {**message, "offset": told["offset"]}
    assert len(sent) == len(CLIENTS) * len(BODIES)
    wrong = [
        f"{receiver} from {keys}: {what}"
        for receiver, world in worlds.items()
        for keys, what in differences(world, consumers[receiver], topic, sent)
    ]
    assert not wrong, "\n".join(wrong)


def differences(
    world: World, consumer: Consumer, topic: str, sent: dict[str, dict[str, Any]]
) -> Iterator[tuple[str, str]]:
    """Wait for everything; yield the keys of what is not as it was sent, and what is not."""
    world.wait(lambda: len(consumer.received()) >= len(sent), RECEIVE_SECONDS_MAX)
    received = consumer.received()
    found = {str(message["keys"]).strip(): message for message in received}
    if len(found) != len(received):
        yield "all", f"{len(received)} messages are {len(found)}"
    for keys, wanted in sent.items():
        got = found.get(keys)
        if got is None:
            yield keys, "it does not come"
            continue
        if base64.b64decode(got["base64"]) != base64.b64decode(wanted["base64"]):
            yield keys, f"body {got['base64'][:60]} and not {wanted['base64'][:60]}"
        if (got["topic"], got["tag"], got["offset"]) != (topic, TAG, wanted["offset"]):
            yield keys, f"{got['topic']}, tag {got['tag']}, offset {got['offset']}"
        for name, value in PROPERTIES.items():
            if got["properties"].get(name) != value:
                yield keys, f"property {name} is {str(got['properties'].get(name))[:60]!r}"
