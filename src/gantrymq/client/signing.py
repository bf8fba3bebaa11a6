"""Signatures of requests, as access control of 4.9 and 5.x wants them.

    content    = the values of all ext fields but `Signature`, by the order of their names, + body
    Signature  = Base64(HMAC-SHA1(secret key, content))

Every request is signed, those to name servers too: they pass over what they do not check. One field
is awkward. A 4.9 server leaves `_UNIQUE_KEY_QUERY` out of the content; a 5.x server does so only
for requests that say they come from release 4.9.3 or older. Such a request says so here.
"""

from __future__ import annotations

import base64
import hmac
from typing import TYPE_CHECKING, Final

from gantrymq.wire.codes import SPOKEN_VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gantrymq.client.settings import Credentials

ACCESS_KEY: Final = "AccessKey"
SECURITY_TOKEN: Final = "SecurityToken"  # noqa: S105  (the name of a field)
SIGNATURE: Final = "Signature"
UNIQUE_KEY_QUERY: Final = "_UNIQUE_KEY_QUERY"
VERSION_WITHOUT_QUERY_FLAG: Final = 399
"""V4_9_3: the last one whose unique key queries are signed without their flag."""


def signature(secret_key: str, content: bytes) -> str:
    """Return the signature of some content."""
    return base64.b64encode(hmac.digest(secret_key.encode(), content, "sha1")).decode()


def signed_fields(
    credentials: Credentials, fields: Mapping[str, str], body: bytes
) -> dict[str, str]:
    """Return a request's ext fields with those that prove who sends it."""
    signed = {**fields, ACCESS_KEY: credentials.access_key}
    if credentials.security_token:
        signed[SECURITY_TOKEN] = credentials.security_token
    # Code units of UTF-16 and code points sort alike: names of fields are ASCII.
    texts = (signed[name] for name in sorted(signed) if name != UNIQUE_KEY_QUERY)
    signed[SIGNATURE] = signature(credentials.secret_key, "".join(texts).encode() + body)
    return signed


def version_to_say(fields: Mapping[str, str]) -> int:
    """Return the version that a signed request must name."""
    return VERSION_WITHOUT_QUERY_FLAG if UNIQUE_KEY_QUERY in fields else int(SPOKEN_VERSION)
