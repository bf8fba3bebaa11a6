"""Options of a command as it asks for them: text, number, yes or no, a time."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from gantrymq.cli.moments import time_ms
from gantrymq.errors import InvalidValue

if TYPE_CHECKING:
    import ssl as tls
    from argparse import Namespace, _ArgumentGroup

    from gantrymq.admin.session import Session
    from gantrymq.cli.arguments import CommandParser
    from gantrymq.clock import Clock

NAMESRV: Final = "127.0.0.1:9876"


class Given:
    """The options that were given, by their long names."""

    def __init__(self, chosen: Namespace, clock: Clock) -> None:
        self._values: dict[str, object] = vars(chosen)
        self.clock = clock

    def text(self, name: str) -> str:
        """Return an option that must be there.

        Raises:
            InvalidValue: it is not.
        """
        found = self.maybe(name)
        if found is None:
            raise InvalidValue(f"option --{name} is missing")
        return found

    def maybe(self, name: str) -> str | None:
        """Return an option, or None; blanks around it do not count."""
        value = self._values.get(name)
        return str(value).strip() if value is not None and not isinstance(value, bool) else None

    def raw(self, name: str) -> str | None:
        """Return an option as it was written."""
        value = self._values.get(name)
        return value if isinstance(value, str) else None

    def number(self, name: str, default: int | None = None) -> int:
        """Return a whole number.

        Raises:
            InvalidValue: it is none, or is missing and has no default.
        """
        text = self.maybe(name)
        if text is None:
            if default is None:
                raise InvalidValue(f"option --{name} is missing")
            return default
        try:
            return int(text)
        except ValueError:
            raise InvalidValue(f"--{name} is {text!r}: give a whole number") from None

    def maybe_number(self, name: str) -> int | None:
        """Return a whole number, or None."""
        return None if self.maybe(name) is None else self.number(name)

    def yes(self, name: str, *, default: bool = False) -> bool:
        """Return a yes or no: a flag, or true and false as mqadmin takes them.

        Raises:
            InvalidValue: it is another word.
        """
        value = self._values.get(name)
        if isinstance(value, bool):
            return value
        if value is None:
            return default
        word = str(value).strip().lower()
        if word not in {"true", "false"}:
            raise InvalidValue(f"--{name} is {value!r}: give true or false")
        return word == "true"

    def time(self, name: str, default: int | None = None) -> int | None:
        """Return a time in milliseconds.

        Raises:
            InvalidValue: it is none.
        """
        text = self.maybe(name)
        return default if text is None else time_ms(text, self.clock)

    def many(self, name: str) -> list[str]:
        """Return an option that may be given more than once."""
        value = self._values.get(name)
        return [str(each) for each in value] if isinstance(value, list) else []

    def words(self, name: str) -> list[str]:
        """Return what stands between commas."""
        return [word.strip() for word in (self.maybe(name) or "").split(",") if word.strip()]


def add_session_options(parser: CommandParser | _ArgumentGroup) -> None:
    """Add what every command takes that speaks to a cluster."""
    parser.add_argument(
        "-n", "--namesrvAddr", "--namesrv", dest="namesrvAddr", metavar="HOST:PORT",
        help="name servers, with ; between them; else NAMESRV_ADDR, else 127.0.0.1:9876",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON value")
    parser.add_argument("--timeout", default="5", metavar="S", help="for one question (5)")
    parser.add_argument(
        "--access-key", metavar="KEY", help="sign requests; else GANTRYMQ_ACCESS_KEY"
    )
    parser.add_argument("--secret-key", metavar="KEY", help="with it; else GANTRYMQ_SECRET_KEY")
    add_tls_options(parser)


def add_tls_options(parser: CommandParser | _ArgumentGroup) -> None:
    """Add what says how to speak TLS with a cluster."""
    parser.add_argument(
        "--cluster-trust", metavar="PEM",
        help="speak TLS, and trust who signs in this file; else GANTRYMQ_CLUSTER_TRUST",
    )  # fmt: skip
    parser.add_argument(
        "--cluster-certificate", metavar="PEM",
        help="show this one; else GANTRYMQ_CLUSTER_CERTIFICATE",
    )  # fmt: skip
    parser.add_argument("--cluster-key", metavar="PEM", help="its key; else GANTRYMQ_CLUSTER_KEY")


def session_of(chosen: Namespace) -> Session:
    """Return the session that the options ask for.

    Raises:
        InvalidValue: an address, a key or the time-out is wrong.
    """
    from gantrymq.admin.session import Session  # noqa: PLC0415
    from gantrymq.client.settings import credentials_of  # noqa: PLC0415

    namesrv = chosen.namesrvAddr or os.environ.get("NAMESRV_ADDR") or NAMESRV
    try:
        timeout_s = float(chosen.timeout)
    except ValueError:
        raise InvalidValue(f"--timeout is {chosen.timeout!r}: give seconds") from None
    access = chosen.access_key or os.environ.get("GANTRYMQ_ACCESS_KEY")
    secret = chosen.secret_key or os.environ.get("GANTRYMQ_SECRET_KEY")
    credentials = credentials_of(access, secret, None)
    return Session(namesrv, credentials=credentials, ssl=cluster_tls(chosen), timeout_s=timeout_s)


def cluster_tls(chosen: Namespace) -> tls.SSLContext | None:
    """Return the TLS that options or variables ask for.

    Raises:
        InvalidValue: a file cannot be used.
    """
    told = [
        getattr(chosen, f"cluster_{name}") or os.environ.get(f"GANTRYMQ_CLUSTER_{name.upper()}")
        for name in ("trust", "certificate", "key")
    ]
    if not any(told):
        return None
    from gantrymq.client.cluster_tls import tls_to_cluster  # noqa: PLC0415

    return tls_to_cluster(*told)
