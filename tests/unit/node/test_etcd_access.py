"""Brokers and an etcd that asks who they are: TLS, a user with a password, certificates.

Whoever may write to etcd decides who is master, so it is where a group is most easily taken over.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gantrymq.cluster.etcd import Etcd, EtcdTrouble
from gantrymq.cluster.etcd_connection import EtcdConnection, EtcdLogin, split_endpoint
from gantrymq.errors import InvalidValue
from gantrymq.node.config import read_broker_config
from gantrymq.node.etcd_access import etcd_login
from gantrymq.store.settings import InvalidSettings
from support.etcd import Protection, etcd
from support.failover_nodes import Group, run
from support.issuing import Issuer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gantrymq.broker.settings import BrokerSettings

USER, PASSWORD, ROOT_PASSWORD = "group-user", "password-of-the-group", "password-of-root"
WAIT_S = 10.0
"""For one call: etcd takes its time for passwords, on purpose."""


def coded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


class Site:
    """An etcd with TLS and users, of whom one may touch what groups keep and nothing else."""

    def __init__(self, folder: Path, address: str, issuer: Issuer) -> None:
        self.folder, self.address, self.issuer = folder, address, issuer
        self.trust = str(issuer.path)
        self._asked = EtcdConnection([address], EtcdLogin(trust_path=self.trust), WAIT_S)
        self.password_file = folder / "password"
        self.put_password(PASSWORD)
        self._enable()

    def put_password(self, password: str) -> None:
        self.password_file.write_text(f"{password}\n")
        self.password_file.chmod(0o600)

    def ask(self, path: str, **content: object) -> None:
        self._asked.post(f"/auth/{path}", content)

    def _enable(self) -> None:
        for name, password in (("root", ROOT_PASSWORD), (USER, PASSWORD)):
            self.ask("user/add", name=name, password=password)
        permission = {
            "permType": "READWRITE", "key": coded("/gantrymq/"), "range_end": coded("/gantrymq0"),
        }  # fmt: skip
        self.ask("role/add", name="gantrymq")
        self.ask("role/grant", name="gantrymq", perm=permission)
        self.ask("user/grant", user=USER, role="gantrymq")
        self.ask("role/add", name="root")
        self.ask("user/grant", user="root", role="root")
        self.ask("enable")
        login = EtcdLogin("root", lambda: ROOT_PASSWORD, self.trust)
        self._asked = EtcdConnection([self.address], login, WAIT_S)

    @property
    def login(self) -> EtcdLogin:
        """Return the group's."""
        return etcd_login(self.settings())

    def settings(self, **more: str) -> BrokerSettings:
        given = self.properties | {"failoverEtcd": self.address, "failoverId": "1"}
        return read_broker_config(given | more, self.folder).broker

    @property
    def properties(self) -> dict[str, str]:
        return {
            "failoverEtcdUser": USER, "failoverEtcdPasswordFile": str(self.password_file),
            "failoverEtcdTrustCertPath": self.trust,
        }  # fmt: skip

    def records(self, login: EtcdLogin | None = None, address: str | None = None) -> Etcd:
        return Etcd([address or self.address], "cluster", "group", WAIT_S, login or self.login)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("etcd")
    issuer = Issuer(folder / "pki")
    own = issuer.issue("etcd", for_both=True)
    protection = Protection(own, EtcdLogin(trust_path=str(issuer.path)))
    with etcd(folder / "etcd", protection=protection) as running:
        yield Site(folder, running.address, issuer)


@pytest.mark.tool("etcd")
def test_a_group_lives_in_an_etcd_that_asks_who_it_is(site: Site, tmp_path: Path) -> None:
    async def main() -> None:
        own = str(site.issuer.issue("member", for_both=True))
        copying = {"haTlsCertPath": own, "haTlsKeyPath": own, "haTlsTrustCertPath": site.trust}
        group = await Group(tmp_path, site.address, **site.properties, **copying).start(1, 2)
        first = group.nodes[1]
        assert await group.send(first, b"hello") == 0
        second = group.nodes[2]
        await group.nodes.pop(1).stop()
        await group.settled(2)
        assert group.masters() == [second]
        await group.stop()

    run(main())


@pytest.mark.tool("etcd")
def test_tokens_that_etcd_forgets_are_asked_for_again(site: Site) -> None:
    records = site.records()
    lease = records.grant(60)
    site.ask("user/add", name="somebody", password="somebodys-password")  # noqa: S106 - all tokens are old then
    assert records.renew(lease)
    connection = EtcdConnection([site.address], site.login, WAIT_S)
    for token in ("", "forgotten", "forgotten.12"):
        connection._token = token
        assert connection.post("/lease/keepalive", {"ID": lease})["result"]["ID"] == lease
    records.revoke(lease)
    assert not records.renew(lease)


@pytest.mark.tool("etcd")
def test_another_password_needs_no_restart(site: Site) -> None:
    records = site.records()
    records.view()
    other = "another-password-of-the-group"
    site.ask("user/changepw", name=USER, password=other)
    try:
        with pytest.raises(EtcdTrouble, match="invalid user ID or password"):
            records.view()
        site.put_password(other)
        records.view()
    finally:
        site.ask("user/changepw", name=USER, password=PASSWORD)
        site.put_password(PASSWORD)


@pytest.mark.tool("etcd")
def test_who_is_nobody_gets_nothing_and_says_no_password(site: Site, tmp_path: Path) -> None:
    other = Issuer(tmp_path / "others", "other")
    login = site.login
    refused = {
        "without a user": (EtcdLogin(trust_path=site.trust), "user name is empty"),
        "a wrong password": (replace(login, password=lambda: "guessed-password"), "password"),
        "a user that there is not": (replace(login, user="nobody"), "password"),
        "another issuer": (replace(login, trust_path=str(other.path)), "certificate verify failed"),
        "nobody's list": (replace(login, trust_path=""), "certificate verify failed"),
    }
    for what, (one, why) in refused.items():
        with pytest.raises(EtcdTrouble, match=why) as told:
            site.records(one).view()
        assert PASSWORD not in str(told.value), what
        assert "guessed" not in str(told.value), what
    with pytest.raises(EtcdTrouble, match="etcd does not answer"):
        site.records(address=site.address.removeprefix("https://")).view()
    with pytest.raises(EtcdTrouble, match="permission denied"):
        EtcdConnection([site.address], login, WAIT_S).post("/kv/range", {"key": coded("/other")})
    assert PASSWORD not in repr(login)
    site.records().view()


@pytest.mark.tool("etcd")
def test_an_etcd_that_asks_for_certificates(tmp_path: Path) -> None:
    issuer = Issuer(tmp_path / "pki")
    shown = str(issuer.issue("broker"))
    known = EtcdLogin(trust_path=str(issuer.path), cert_path=shown, key_path=shown)
    protection = Protection(issuer.issue("etcd", for_both=True), known, issuer.path)
    with etcd(tmp_path / "etcd", protection=protection) as running:
        Etcd([running.address], "c", "g", login=known).view()
        stranger = str(Issuer(tmp_path / "others", "other").issue("broker"))
        for login in (
            replace(known, cert_path="", key_path=""),
            replace(known, cert_path=stranger, key_path=stranger),
        ):
            with pytest.raises(EtcdTrouble):
                Etcd([running.address], "c", "g", login=login).view()


FAILOVER = {"failoverEtcd": "https://10.0.0.1:2379", "failoverId": "1"}


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"failoverEtcdUser": "u"}, "go together"),
        ({"failoverEtcdPasswordFile": "f"}, "go together"),
        ({"failoverEtcdCertPath": "f"}, "failoverEtcdKeyPath go together"),
        ({"failoverEtcdKeyPath": "f"}, "failoverEtcdKeyPath go together"),
        (
            {"failoverEtcd": "10.0.0.1:2379", "failoverEtcdTrustCertPath": "f"},
            "https:// before every endpoint",
        ),
        (
            {
                "failoverEtcd": "https://10.0.0.1:2379,10.0.0.2:2379", "failoverEtcdUser": "u",
                "failoverEtcdPasswordFile": "f",
            },
            "10.0.0.2 without TLS, and the password",
        ),
        ({"failoverEtcd": "ftp://10.0.0.1:2379"}, "neither http:// nor https://"),
        ({"failoverEtcd": "https://10.0.0.1"}, "host:port"),
        ({"failoverEtcd": "", "failoverId": "0", "failoverEtcdUser": "u"}, "say where etcd is"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, settings: dict[str, str], why: str) -> None:
    with pytest.raises(InvalidSettings, match=why):
        read_broker_config(FAILOVER | settings, tmp_path)


def test_what_can_be_is_taken(tmp_path: Path) -> None:
    user = {"failoverEtcdUser": "u", "failoverEtcdPasswordFile": "f"}
    for settings in (
        {},
        user,
        user | {"failoverEtcd": "127.0.0.1:2379"},
        user | {"failoverEtcd": "10.0.0.1:2379", "insecure": "true"},
        {"failoverEtcdTrustCertPath": "f"},
    ):
        read_broker_config(FAILOVER | settings, tmp_path)
    assert split_endpoint(" https://[::1]:2379/ ") == ("https", "::1", 2379)
    assert split_endpoint("etcd.example:2379") == ("http", "etcd.example", 2379)


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        (None, 0, "cannot be read"),
        (b"", 0o600, "has no password"),
        (b"\nsecond\n", 0o600, "has no password"),
        (b"\xff\xff\n", 0o600, "has no password"),
        (b"password\n", 0o644, "mode 0644.*chmod 600"),
    ],
)
def test_a_password_file_that_cannot_be_used_does_not_start(
    tmp_path: Path, content: bytes | None, mode: int, why: str
) -> None:
    path = tmp_path / "password"
    if content is not None:
        path.write_bytes(content)
        path.chmod(mode)
    settings = FAILOVER | {"failoverEtcdUser": "u", "failoverEtcdPasswordFile": str(path)}
    with pytest.raises(InvalidValue, match=why):
        etcd_login(read_broker_config(settings, tmp_path).broker)


def test_certificates_that_cannot_be_used_do_not_start(tmp_path: Path) -> None:
    for name in ("failoverEtcdTrustCertPath", "failoverEtcdCertPath"):
        settings = FAILOVER | {name: "missing.pem"}
        if "Trust" not in name:
            settings["failoverEtcdKeyPath"] = "missing.pem"
        with pytest.raises(InvalidValue, match=r"missing\.pem"):
            etcd_login(read_broker_config(settings, tmp_path).broker)


@pytest.mark.parametrize(
    ("settings", "is_said"),
    [
        ({"aclEnable": "true", "failoverEtcd": "10.0.0.1:2379"}, True),
        ({"aclEnable": "true"}, False),
        ({"aclEnable": "true", "failoverEtcd": "127.0.0.1:2379"}, False),
        ({"failoverEtcd": "10.0.0.1:2379"}, False),
    ],
)
def test_access_control_with_an_etcd_in_the_clear_is_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, settings: dict[str, str], *, is_said: bool
) -> None:
    etcd_login(read_broker_config(FAILOVER | settings, tmp_path).broker)
    assert ("without TLS: whoever is in between" in caplog.text) is is_said
