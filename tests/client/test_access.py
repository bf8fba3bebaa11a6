"""Signed requests, as the access control of Apache's brokers and of ours checks them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq import (
    Later,
    Producer,
    PullConsumer,
    PushConsumer,
    ReceivedMessage,
    TransactionState,
)
from gantrymq.client.errors import NoRoute
from gantrymq.client.settings import ClientSettings, Credentials
from gantrymq.model.message import Message
from gantrymq.wire.response_errors import ResponseError
from support import apache, gantry, tools
from support.accounts import write_accounts
from support.targets import Target

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.transport import Run

KEY, SECRET = "gantryuser", "a-secret-of-12"
ACL_49 = f"""\
accounts:
- accessKey: {KEY}
  secretKey: {SECRET}
  admin: true
"""
REFUSED = (ResponseError, NoRoute)
"""By the broker; our name server has accounts too, and does not even tell the way."""
PROVIDERS = "org.apache.rocketmq.auth.authentication.provider."
SETTINGS = {
    "4.9.7": {"aclEnable": "true"},
    "5.5.0": {
        "authenticationEnabled": "true",
        "authenticationProvider": f"{PROVIDERS}DefaultAuthenticationProvider",
        "authenticationMetadataProvider": f"{PROVIDERS}LocalAuthenticationMetadataProvider",
        "initAuthenticationUser": f'{{"username":"{KEY}","password":"{SECRET}"}}',
    },
}


@pytest.fixture(
    scope="module",
    params=[
        "gantrymq",
        *(pytest.param(each, marks=pytest.mark.tool("java")) for each in apache.VERSIONS),
    ],
)
def namesrv(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Return the name server of a broker that wants signatures."""
    version = str(request.param)
    work = tmp_path_factory.mktemp(f"acl-{version}")
    if version == "gantrymq":
        write_accounts(work, ACL_49)
        with gantry.server(work, {"aclEnable": "true", "enablePropertyFilter": "true"}) as ours:
            yield ours.name_server
        return
    conf = work / "broker" / "conf"
    conf.mkdir(parents=True)
    (conf / "plain_acl.yml").write_text(ACL_49, encoding="utf-8")
    try:
        with apache.name_server(version, work / "namesrv") as names:
            settings = {
                **SETTINGS[version],
                "storePathRootDir": str(work / "store"),
                "namesrvAddr": names.address,
                "mappedFileSizeCommitLog": str(16 << 20),
                "maxHashSlotNum": "10000",
                "maxIndexNum": "40000",
            }
            with apache.broker(version, work / "broker", settings) as broker:
                Target(version, names.address, broker.address).wait_for_route("TBW102")
                yield names.address
    except apache.NotFetched as error:
        if tools.required():
            pytest.fail(f"{error}; with CI=true no test may be left out", pytrace=False)
        pytest.skip(str(error))


@pytest.mark.parametrize("binary", [True, False], ids=["binary", "json"])
def test_a_signed_send_is_taken(namesrv: str, run: Run, *, binary: bool) -> None:
    async def main() -> None:
        settings = ClientSettings(
            name_servers=(namesrv,),
            credentials=Credentials(KEY, SECRET),
            binary_headers=binary,
        )
        async with Producer(namesrv, "signed_group", settings=settings) as producer:
            result = await producer.send("Signed", b"body", tags="Grün", keys=["k"])
            assert result.is_ok
            results = await producer.send_batch(
                [Message(topic="Signed", body=b"%d" % number) for number in range(3)]
            )
            assert results[0].is_ok

    run(main())


@pytest.mark.parametrize(
    "keys", [{}, {"access_key": KEY, "secret_key": "wrong-secret"}], ids=["none", "wrong"]
)
def test_a_send_that_is_not_is_refused(namesrv: str, run: Run, keys: dict[str, str]) -> None:
    async def main() -> None:
        access_key, secret_key = keys.get("access_key"), keys.get("secret_key")
        async with Producer(
            namesrv, "g", access_key=access_key, secret_key=secret_key, retries=0
        ) as producer:
            with pytest.raises(REFUSED):
                await producer.send("Signed", b"body")

    run(main())


def signed(**more: object) -> dict[str, Any]:
    return {"access_key": KEY, "secret_key": SECRET, **more}


@pytest.mark.parametrize("orderly", [False, True], ids=["concurrent", "orderly"])
def test_signed_consumers_read_and_commit(namesrv: str, run: Run, *, orderly: bool) -> None:
    """Heartbeats, members, locks, pulls, offsets and what is given back: all of it is signed."""
    topic, group = f"SignedReads{int(orderly)}", f"signed_readers_{int(orderly)}"

    async def main() -> None:
        async with Producer(namesrv, "signed_group", **signed()) as producer:
            for number in range(8):
                await producer.send(topic, b"%d" % number, keys=[f"key-{number}"])
        bodies: set[bytes] = set()
        complete = asyncio.Event()
        failed: list[bytes] = []

        async def handle(message: ReceivedMessage) -> None:
            if message.body == b"3" and not failed:
                failed.append(message.body)
                raise Later(1)
            bodies.add(message.body)
            if len(bodies) == 8:
                complete.set()

        consumer = PushConsumer(namesrv, group, **signed(start="first", orderly=orderly))
        consumer.subscribe(topic, handler=handle)
        async with consumer:
            await complete.wait()
        async with PullConsumer(namesrv, group, **signed()) as reader:
            queues = await reader.queues(topic)
            committed = [await reader.committed(queue) or 0 for queue in queues]
            assert sum(committed) == 8
            (found,) = await reader.query(topic, "key-5")
            assert found.body == b"5"
            same = await reader.find(topic, found.message_id)
            assert same is not None
            assert same.body == b"5"

    run(main())


def test_signed_transactions_and_requests(namesrv: str, run: Run) -> None:
    async def main() -> None:
        async with Producer(
            namesrv, "signed_asker", **signed(check=lambda _message: TransactionState.COMMIT)
        ) as producer:
            await producer.send("SignedSums", b"0")  # makes the topic
            bodies: asyncio.Queue[bytes] = asyncio.Queue()

            async def answer(message: ReceivedMessage) -> None:
                if message.reply_to is not None:
                    await producer.reply(message, message.body + b"!")
                await bodies.put(message.body)

            consumer = PushConsumer(namesrv, "signed_summers", **signed(start="first"))
            consumer.subscribe("SignedSums", handler=answer)
            async with consumer:
                assert await bodies.get() == b"0"
                reply = await producer.request("SignedSums", b"1", timeout_s=20)
                assert reply.body == b"1!"
                result = await producer.send_in_transaction(
                    "SignedSums", lambda _message: TransactionState.COMMIT, b"2"
                )
                assert result.send.is_ok
                assert {await bodies.get(), await bodies.get()} == {b"1", b"2"}

    run(main())


def test_a_consumer_that_is_not_signed_reads_nothing(namesrv: str, run: Run) -> None:
    async def main() -> None:
        async with Producer(namesrv, "signed_group", **signed()) as producer:
            await producer.send("SignedSecrets", b"secret")
        async with PullConsumer(namesrv, "strangers") as stranger:
            with pytest.raises(REFUSED):
                await stranger.pull((await stranger.queues("SignedSecrets"))[0], 0)

    run(main())
