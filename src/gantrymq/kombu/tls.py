"""TLS as kombu's users say it: a context, `True`, or the dictionary that py-amqp takes."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any, Final

from gantrymq.errors import InvalidValue, shown

_KNOWN: Final = ("ca_certs", "certfile", "keyfile", "cert_reqs", "check_hostname")


def context_of(given: object) -> ssl.SSLContext | None:
    """Return the context that `Connection(ssl=...)` or Celery's `broker_use_ssl` means.

    Raises:
        InvalidValue: it is nothing of the kind, or has options that are not known here.
    """
    if given is None or given is False:
        return None
    if isinstance(given, ssl.SSLContext):
        return given
    if given is not True and not isinstance(given, Mapping):
        raise InvalidValue(
            f"ssl is {shown(repr(given))}: give an ssl.SSLContext, True, or a dictionary of"
            f" {', '.join(_KNOWN)}"
        )
    options: Mapping[str, Any] = {} if given is True else given
    unknown = sorted(map(str, options.keys() - set(_KNOWN)))
    if unknown:
        raise InvalidValue(
            f"ssl has {', '.join(unknown)}: known are {', '.join(_KNOWN)}; for anything else give"
            " an ssl.SSLContext"
        )
    context = ssl.create_default_context(cafile=options.get("ca_certs"))
    required = options.get("cert_reqs", ssl.CERT_REQUIRED)
    context.check_hostname = bool(options.get("check_hostname", required == ssl.CERT_REQUIRED))
    context.verify_mode = ssl.VerifyMode(required)
    if options.get("certfile"):
        context.load_cert_chain(options["certfile"], options.get("keyfile"))
    return context
