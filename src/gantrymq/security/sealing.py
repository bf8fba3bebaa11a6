"""Secrets in a file that others may copy: encrypted and authenticated under a key that they lack.

HMAC signatures need the secret itself, so a hash of it would not do. The construction is made of
HMAC-SHA256 alone, which the standard library has; it is a stream cipher by a pseudo-random function
in counter mode, and then a MAC over what was encrypted (encrypt-then-MAC), with two keys:

    encrypting     = HMAC(key, "gantrymq seal 1 encrypt")
    authenticating = HMAC(key, "gantrymq seal 1 authenticate")
    keystream      = HMAC(encrypting, nonce + block number, 8 bytes)  for blocks 0, 1, 2...
    hidden         = secret XOR keystream
    tag            = HMAC(authenticating, length of owner, 8 bytes + owner + nonce + hidden)
    sealed         = "seal1." + Base64url(nonce, 16 bytes + hidden + tag, 32 bytes)

The nonce is random for every seal. The owner, whose secret it is, is in the tag: what was sealed
for one user cannot be put in another's place. The tag is compared before anything is decrypted.
The length of a secret can be seen.

The key is 32 random bytes, in hexadecimal digits, in a file that its owner alone may read. Whoever
has both files has the secrets: back them up apart. While the key is changed the file has two, a
line each: the first seals, both open (`begin_change`, `end_change`).
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import secrets
import stat
from typing import TYPE_CHECKING, Final

from gantrymq.errors import InvalidValue, shown
from gantrymq.security.accounts import Secret
from gantrymq.security.whole_file import sync_directory, write_whole

if TYPE_CHECKING:
    from pathlib import Path

MARK: Final = "seal1."
KEY_BYTES: Final = 32
KEYS_MAX: Final = 2
NONCE_BYTES: Final = 16
TAG_BYTES: Final = 32
BLOCK_BYTES: Final = 32
_HASH: Final = "sha256"
_OTHERS: Final = 0o077


class SealKey:
    """The key of one file of users; nothing that prints or logs values shows it."""

    __slots__ = ("_authenticating", "_before", "_encrypting")

    def __init__(self, key: bytes, before: SealKey | None = None) -> None:
        """Seal and open with a key; what it does not open, the one `before` it may."""
        self._before = before
        if len(key) != KEY_BYTES:
            raise InvalidValue(f"a key to seal with has {KEY_BYTES} bytes, and not {len(key)}")
        self._encrypting = hmac.digest(key, b"gantrymq seal 1 encrypt", _HASH)
        self._authenticating = hmac.digest(key, b"gantrymq seal 1 authenticate", _HASH)

    def __repr__(self) -> str:
        """Return stars."""
        return "SealKey(***)"

    def __reduce__(self) -> tuple[object, ...]:
        """Refuse to be copied to where it might be shown."""
        raise TypeError("a key does not leave its process")

    def seal(self, owner: str, secret: Secret, nonce: bytes | None = None) -> str:
        """Return a secret as a file may have it; `nonce` is for tests with known results."""
        nonce = secrets.token_bytes(NONCE_BYTES) if nonce is None else nonce
        hidden = self._mixed(nonce, secret.reveal().encode())
        content = nonce + hidden + self._tag(owner, nonce, hidden)
        return MARK + base64.urlsafe_b64encode(content).decode().rstrip("=")

    def open(self, owner: str, sealed: str) -> Secret:
        """Return the secret that was sealed for an owner.

        Raises:
            InvalidValue: it was sealed with another key, for another owner, or has been changed.
                The text is not repeated.
        """
        content = _content(sealed)
        nonce, hidden = content[:NONCE_BYTES], content[NONCE_BYTES:-TAG_BYTES]
        if not hmac.compare_digest(content[-TAG_BYTES:], self._tag(owner, nonce, hidden)):
            if self._before is not None:
                return self._before.open(owner, sealed)
            raise InvalidValue(
                f"the secret of {shown(owner)} was not sealed with this key for this user; bring "
                "back the key file that belongs to it, or give the user another secret with "
                "`gantrymq user passwd`"
            )
        return Secret(self._mixed(nonce, hidden).decode())

    def _mixed(self, nonce: bytes, text: bytes) -> bytes:
        blocks = (
            hmac.digest(self._encrypting, nonce + number.to_bytes(8), _HASH)
            for number in range(-(-len(text) // BLOCK_BYTES))
        )
        return bytes(one ^ other for one, other in zip(text, b"".join(blocks), strict=False))

    def _tag(self, owner: str, nonce: bytes, hidden: bytes) -> bytes:
        name = owner.encode()
        return hmac.digest(
            self._authenticating, len(name).to_bytes(8) + name + nonce + hidden, _HASH
        )


def is_sealed(text: str) -> bool:
    """Tell whether a text has the form of a sealed secret, whatever it was sealed with."""
    try:
        _content(text)
    except InvalidValue:
        return False
    return True


def _content(sealed: str) -> bytes:
    problem = "a secret is not sealed, or only a part of it is there"
    text = sealed.removeprefix(MARK)
    if text == sealed:
        raise InvalidValue(problem)
    try:
        content = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise InvalidValue(problem) from None
    if len(content) < NONCE_BYTES + TAG_BYTES:
        raise InvalidValue(problem)
    return content


# -- the key file ----------------------------------------------------------------------------------


def read_key(path: Path) -> SealKey:
    """Return the key of a file.

    Raises:
        InvalidValue: it is missing, others may read it, or it is no key.
    """
    return _key(_read(path))


def _read(path: Path) -> list[bytes]:
    """Return the keys of a file: one, or two while it is being changed, the new one first."""
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            text = file.read(1024)
    except OSError as error:
        raise InvalidValue(
            f"the key file {path} cannot be read: {error.strerror}; without it nobody can open "
            "the secrets of the users"
        ) from None
    if stat.S_IMODE(mode) & _OTHERS:
        raise InvalidValue(
            f"the key file {path} has mode {stat.S_IMODE(mode):04o}, so that others may read it; "
            "chmod 600"
        )
    try:
        found = [bytes.fromhex(line) for line in text.decode("ascii").split()]
    except ValueError:
        found = []
    if not 1 <= len(found) <= KEYS_MAX or any(len(one) != KEY_BYTES for one in found):
        raise InvalidValue(
            f"the key file {path} does not hold {KEY_BYTES * 2} hexadecimal digits; bring back "
            "the one that `gantrymq user add` made"
        )
    return found


def _key(keys: list[bytes]) -> SealKey:
    return SealKey(keys[0], SealKey(keys[1]) if len(keys) > 1 else None)


def _written(keys: list[bytes]) -> bytes:
    return b"".join(one.hex().encode() + b"\n" for one in keys)


def make_key(path: Path) -> SealKey:
    """Make a key file for its owner alone, and return its key; one that is there is taken.

    Raises:
        InvalidValue: as `read_key`.
        OSError: the disk refuses.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        return read_key(path)
    with os.fdopen(handle, "wb") as file:
        file.write(_written([secrets.token_bytes(KEY_BYTES)]))
        file.flush()
        os.fsync(file.fileno())
    sync_directory(path.parent)
    return read_key(path)


def begin_change(path: Path) -> tuple[SealKey, bool]:
    """Put a new key before the one of a file, and return it; the old one still opens.

    Where a change was begun and not ended its new key is taken, which the second value tells.

    Raises:
        InvalidValue: as `read_key`.
        OSError: the disk refuses; the file is as it was.
    """
    keys = _read(path)
    was_begun = len(keys) > 1
    if not was_begun:
        keys.insert(0, secrets.token_bytes(KEY_BYTES))
        write_whole(path, _written(keys))
    return _key(keys), was_begun


def end_change(path: Path) -> None:
    """Forget the old key: from now on it opens nothing.

    Raises:
        InvalidValue: as `read_key`.
        OSError: the disk refuses; the file is as it was.
    """
    write_whole(path, _written(_read(path)[:1]))


def new_key_of(path: Path) -> SealKey:
    """Return the key of a file that seals, without the one that it replaces.

    Raises:
        InvalidValue: as `read_key`.
    """
    return _key(_read(path)[:1])
