"""CVE-2024-23321: admin requests answered what is nobody's business, passwords among it.

Whatever asks for settings gets them without secrets: over the wire, printed by the command line, in
the text of a value that finds its way into a log. A setting that looks like a secret is masked by
its name, whoever adds it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gantrymq.cli.main import main
from gantrymq.model.secrets import MASK, is_secret, masked
from gantrymq.transport.tls import ClientTls, ServerTls
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.codes import RequestCode, ResponseCode
from support.access_matrix import write_users
from support.accounts import FILE, SECRETS, WHITE, write_accounts
from support.attacks import Site

if TYPE_CHECKING:
    from pathlib import Path

SECRET = "correct-horse-battery"  # noqa: S105 - what must not be seen
HIDDEN = {
    "tls.server.keyPassword": SECRET,
    "tls.client.keyPassword": SECRET,
    "objectStoreSecretKey": SECRET,
    "regionId": f"http://user:{SECRET}@10.0.0.1/x",
}
"""Settings that a broker's file may have; the last one is an address with a password in it."""
ASKED = (
    RequestCode.GET_BROKER_CONFIG,
    RequestCode.GET_BROKER_RUNTIME_INFO,
    RequestCode.GET_BROKER_CLUSTER_INFO,
    RequestCode.GET_BROKER_CLUSTER_ACL_INFO,
    RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG,
    RequestCode.GET_ALL_TOPIC_CONFIG,
    RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG,
    RequestCode.GET_BROKER_HA_STATUS,
    RequestCode.AUTH_LIST_USER,
    RequestCode.AUTH_LIST_ACL,
    RequestCode.EXPORT_ROCKSDB_CONFIG_TO_JSON,
    RequestCode.GET_CONTROLLER_CONFIG,
    RequestCode.GET_NAMESRV_CONFIG,
)


def test_cve_2024_23321_no_admin_request_answers_a_secret(tmp_path: Path) -> None:
    with Site(tmp_path, HIDDEN) as site:
        answers = [site.ask(code) for code in ASKED] + [site.ask_namesrv(code) for code in ASKED]
        known = SETTINGS.decode(answers[0].body)
    assert sum(answer.code == ResponseCode.SUCCESS for answer in answers) > 5
    for answer in answers:
        said = f"{answer.fields} {answer.remark} {answer.body!r}"
        assert SECRET not in said, answer.code
    assert known["regionId"] == f"http://{MASK}@10.0.0.1/x"
    assert all(not text or text == MASK for name, text in known.items() if is_secret(name))


def test_cve_2024_23321_not_even_those_of_accounts_and_users(tmp_path: Path) -> None:
    """Whoever asks is an administrator here, by address."""
    folder = tmp_path / "access"
    folder.mkdir()
    write_accounts(folder, FILE.replace(WHITE, "127.0.0.1"))
    write_users(folder)
    sealed = [line for line in (folder / "users.toml").read_text().splitlines() if "seal1" in line]
    assert sealed
    with Site(tmp_path / "site", {"aclEnable": "true", "aclPath": str(folder)}) as site:
        answers = [site.ask(code) for code in ASKED]
    said = " ".join(f"{answer.fields} {answer.remark} {answer.body!r}" for answer in answers)
    assert "administrator" in said, "the accounts were shown"
    for secret in (*SECRETS, *(line.split('"')[1] for line in sealed), "seal1"):
        assert secret not in said


@pytest.mark.parametrize("flag", ["-p", "-m"])
def test_cve_2024_23321_the_command_line_prints_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str
) -> None:
    path = tmp_path / "broker.conf"
    path.write_bytes(SETTINGS.encode(HIDDEN))
    assert main(["broker", "-c", str(path), flag]) == 0
    said = capsys.readouterr().out
    assert f"regionId=http://{MASK}@" in said
    assert SECRET not in said


def test_cve_2024_23321_what_looks_like_a_secret_is_masked() -> None:
    names = (
        "tls.server.keyPassword", "secretKey", "SECRET_KEY", "accessKey", "innerClientCredentials",
        "securityToken", "haSharedSecret", "rootPasswd", "signature", "tls.privateKey",
    )  # fmt: skip
    assert masked(dict.fromkeys(names, SECRET)) == dict.fromkeys(names, MASK)
    assert masked(dict.fromkeys(names, "")) == dict.fromkeys(names, "")
    honest = {"listenPort": "10911", "keyPath": "/etc/tls/key.pem", "namesrvAddr": "a:1;b:2"}
    assert masked(honest) == honest


def test_cve_2024_23321_a_password_is_no_part_of_a_value_that_is_shown() -> None:
    assert SECRET not in repr(ServerTls(key_password=SECRET))
    assert SECRET not in repr(ClientTls(key_password=SECRET))
