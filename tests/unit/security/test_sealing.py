"""Sealed secrets: known results, every change is noticed, and nothing shows what is inside."""

from __future__ import annotations

import base64
import hashlib
import hmac
import pickle
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.errors import InvalidValue
from gantrymq.security.accounts import Secret
from gantrymq.security.sealing import MARK, SealKey, is_sealed, make_key, read_key

if TYPE_CHECKING:
    from pathlib import Path

KEY = SealKey(bytes(range(32)))
NONCE = bytes(range(100, 116))


@pytest.mark.parametrize(
    ("owner", "secret", "sealed"),
    [
        (
            "anna",
            "12345678",
            "seal1.ZGVmZ2hpamtsbW5vcHFyc5eHECp-F8Q7X_oHR3PtpW5ZOXSnipxRNeEubbk159q9qwyZI0gTaW4",
        ),
        (
            "orders-service",
            "s" * 43,
            "seal1.ZGVmZ2hpamtsbW5vcHFyc9XGUG04UoBwtfY13PF2-UQ8sI6ikVksknOKt3-KqxXV15i5i6UCGlXadNC8bp2YtSlOHY2eUQrSZEEL_BIwacCfEDZsNYIO2_xaUw",
        ),
        ("anna", "", "seal1.ZGVmZ2hpamtsbW5vcHFyc3Sz93l1qp647U37jo3bn8kPiUweFnvXmhBYeaOWqLdJ"),
    ],
)
def test_known_results(owner: str, secret: str, sealed: str) -> None:
    """What was written by an earlier release must be opened by every later one."""
    assert KEY.seal(owner, Secret(secret), NONCE) == sealed
    assert KEY.open(owner, sealed).reveal() == secret


def test_the_construction_is_the_documented_one() -> None:
    """Done again here, step by step, with nothing of the code under test."""

    def mac(key: bytes, content: bytes) -> bytes:
        return hmac.new(key, content, hashlib.sha256).digest()

    root, secret, owner = bytes(range(32)), b"x" * 40, b"anna"
    encrypting = mac(root, b"gantrymq seal 1 encrypt")
    authenticating = mac(root, b"gantrymq seal 1 authenticate")
    stream = mac(encrypting, NONCE + b"\0" * 8) + mac(encrypting, NONCE + b"\0" * 7 + b"\1")
    hidden = bytes(a ^ b for a, b in zip(secret, stream[:40], strict=True))
    tag = mac(authenticating, b"\0" * 7 + b"\4" + owner + NONCE + hidden)
    text = base64.urlsafe_b64encode(NONCE + hidden + tag).decode().rstrip("=")
    assert KEY.seal("anna", Secret("x" * 40), NONCE) == f"seal1.{text}"


@given(st.text(st.characters(codec="utf-8"), max_size=200), st.text(min_size=1, max_size=20))
def test_what_is_sealed_can_be_opened(secret: str, owner: str) -> None:
    owner = owner.encode(errors="ignore").decode()
    sealed = KEY.seal(owner, Secret(secret))
    assert is_sealed(sealed)
    assert KEY.open(owner, sealed) == Secret(secret)
    assert KEY.seal(owner, Secret(secret)) != sealed, "two seals of a secret look different"


def test_every_changed_bit_is_noticed() -> None:
    sealed = KEY.seal("anna", Secret("a-secret-of-anna"))
    content = base64.urlsafe_b64decode(sealed.removeprefix(MARK) + "==")
    for place in range(len(content) * 8):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        text = MARK + base64.urlsafe_b64encode(changed).decode().rstrip("=")
        with pytest.raises(InvalidValue, match="not sealed with this key"):
            KEY.open("anna", text)


@pytest.mark.parametrize("owner", ["ann", "annaa", "", "ben"])
def test_the_secret_of_one_is_not_anothers(owner: str) -> None:
    sealed = KEY.seal("anna", Secret("a-secret-of-anna"))
    with pytest.raises(InvalidValue, match="gantrymq user passwd") as caught:
        KEY.open(owner, sealed)
    assert sealed not in str(caught.value)


def test_another_key_opens_nothing() -> None:
    sealed = KEY.seal("anna", Secret("a-secret-of-anna"))
    with pytest.raises(InvalidValue, match="bring back the key file"):
        SealKey(bytes(32)).open("anna", sealed)


@pytest.mark.parametrize(
    "text", ["", "plain-secret", MARK, f"{MARK}abc", f"{MARK}{'a' * 63}", f"{MARK}{'ä' * 80}"]
)
def test_what_is_not_sealed_is_told_apart(text: str) -> None:
    assert not is_sealed(text)
    with pytest.raises(InvalidValue, match="not sealed") as caught:
        KEY.open("anna", text)
    assert not text or text not in str(caught.value)


def test_nothing_shows_a_key() -> None:
    assert repr(KEY) == str(KEY) == "SealKey(***)"
    with pytest.raises(TypeError):
        pickle.dumps(KEY)


def test_a_key_file_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "conf" / "users.key"
    sealed = make_key(path).seal("anna", Secret("a-secret"))
    content = path.read_bytes()
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(bytes.fromhex(content.decode().strip())) == 32
    assert make_key(path).open("anna", sealed) == read_key(path).open("anna", sealed)
    assert path.read_bytes() == content
    assert make_key(tmp_path / "other.key") is not None
    assert (tmp_path / "other.key").read_bytes() != content


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "users.key"
    make_key(path)
    path.chmod(mode)
    with pytest.raises(InvalidValue, match=rf"users.key has mode {mode:04o}.*chmod 600"):
        read_key(path)


@pytest.mark.parametrize("content", [b"", b"abc", b"0" * 63, b"z" * 64, b"\xff" * 64, b"0" * 66])
def test_a_file_that_is_no_key_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "users.key"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(InvalidValue, match="64 hexadecimal digits"):
        read_key(path)
    with pytest.raises(InvalidValue, match="cannot be read"):
        read_key(tmp_path / "missing.key")
