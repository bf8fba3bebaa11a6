"""Signed requests, as the access control of Apache's brokers checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.client.producer import Producer
from gantrymq.client.settings import ClientSettings, Credentials
from gantrymq.model.message import Message
from gantrymq.wire.response_errors import ResponseError
from support import apache, tools
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
    params=[pytest.param(each, marks=pytest.mark.tool("java")) for each in apache.VERSIONS],
)
def namesrv(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """Return the name server of a broker that wants signatures."""
    version = str(request.param)
    work = tmp_path_factory.mktemp(f"acl-{version}")
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
            with pytest.raises(ResponseError):
                await producer.send("Signed", b"body")

    run(main())
