"""Signatures of requests, as access control of 4.9 and 5.x wants them: made here, and checked here.

    content    = the values of all ext fields but `Signature`, by the order of their names, + body
    Signature  = Base64(HMAC-SHA1(secret key, content))

Clients sign every request, those to name servers too: servers without access control pass over it.
One field is awkward. A 4.9 server leaves `_UNIQUE_KEY_QUERY` out of the content, while its own
clients sign it; a 5.x server leaves it out only for requests that say they come from release 4.9.3
or older. So a request of ours says so, and our server takes both. There is neither a time nor a
number in the content: whoever can listen can send a request again, so listen through TLS.
"""

from __future__ import annotations

import base64
import hmac
from typing import TYPE_CHECKING, Final, Protocol

import msgspec

from gantrymq.wire.codes import SPOKEN_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.wire.command import Command

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"  # noqa: S105  (the name of a field)
SIGNATURE: Final = "Signature"
UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
FORWARDED: Final = "gantrymqForwarded"
"""Put into a request by a broker that passes it on for a client, who could not have signed it."""
VERSION_WITHOUT_QUERY_FLAG: Final = 399
"""V4_9_3: the last one whose unique key queries are signed without their flag."""
_UNSIGNED: Final = frozenset({SIGNATURE, FORWARDED})


class Signer(Protocol):
    """Who signs: an account, and its secret."""

    @property
    def access_key(self) -> str:
        """Return the name of the account."""
        ...

    @property
    def secret_key(self) -> str:
        """Return what only the account and the servers know."""
        ...

    @property
    def security_token(self) -> str | None:
        """Return the token that some clouds want beside them."""
        ...


def signature(secret_key: str, content: bytes) -> str:
    """Return the signature of some content."""
    return base64.b64encode(hmac.digest(secret_key.encode(), content, "sha1")).decode()


def content(fields: Mapping[str, str], body: bytes, *, with_query_flag: bool = False) -> bytes:
    """Return what is signed of a request."""
    # Code units of UTF-16 and code points sort alike: names of fields are ASCII.
    texts = [
        fields[name]
        for name in sorted(fields)
        if name not in _UNSIGNED and (with_query_flag or name != UNIQUE_KEY_QUERY)
    ]
    return "".join(texts).encode(errors="surrogatepass") + body


def is_signed(secret_key: str, fields: Mapping[str, str], body: bytes) -> bool:
    """Tell whether a request was signed with a secret, and is as it was then."""
    given = fields.get(SIGNATURE, "").encode(errors="replace")
    ways = (False, True) if UNIQUE_KEY_QUERY in fields else (False,)
    return any(
        hmac.compare_digest(
            given, signature(secret_key, content(fields, body, with_query_flag=way)).encode()
        )
        for way in ways
    )


def signed_fields(signer: Signer, fields: Mapping[str, str], body: bytes) -> dict[str, str]:
    """Return a request's ext fields with those that prove who sends it."""
    signed = {**fields, ACCESS_KEY: signer.access_key}
    if signer.security_token:
        signed[SECURITY_TOKEN] = signer.security_token
    signed[SIGNATURE] = signature(signer.secret_key, content(signed, body))
    return signed


def signed(signer: Signer, request: Command) -> Command:
    """Return a request with what proves who sends it."""
    return msgspec.structs.replace(
        request,
        fields=signed_fields(signer, request.fields, request.body),
        version=version_to_say(request.fields),
        wire_pairs=None,
    )


def version_to_say(fields: Mapping[str, str]) -> int:
    """Return the version that a signed request must name."""
    return VERSION_WITHOUT_QUERY_FLAG if UNIQUE_KEY_QUERY in fields else int(SPOKEN_VERSION)
