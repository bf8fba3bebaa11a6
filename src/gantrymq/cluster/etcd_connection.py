"""How a group speaks to etcd: its endpoints, TLS, and the user it is there.

Through etcd's JSON gateway; the extra `failover` has the client. Every call blocks for a bounded
time and is made on a thread of its own, never on the loop. Several endpoints are tried in turn.

With a user the gateway wants a token, which etcd forgets: after some minutes without a request, at
its own restart, when its users change. It then refuses a request without having looked at it, so
the request is made once more with a new token.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from gantrymq.errors import GantryError, InvalidValue
from gantrymq.transport.addresses import split_address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TOKEN_GONE: Final = (
    "invalid auth token", "revision of auth store is old", "user name is empty",
)  # fmt: skip
"""What etcd says of a request that needs a new token."""
DETAIL_CHARACTERS_MAX: Final = 300


class EtcdTrouble(GantryError):
    """etcd did not answer, or not what it should; the outcome of a change is not known."""


@dataclass(frozen=True, slots=True)
class EtcdLogin:
    """Who a broker is to etcd, and how it knows etcd; empty texts are nothing of the kind."""

    user: str = ""
    password: Callable[[], str] = field(default=str, repr=False)
    """Asked at every login, so that a new one needs no restart; raises InvalidValue."""
    trust_path: str = ""
    """Who signs etcd's certificates; without it the machine's own list counts."""
    cert_path: str = ""
    key_path: str = ""


def split_endpoint(text: str) -> tuple[str, str, int]:
    """Read `host:port`, `http://host:port` or `https://host:port`.

    Raises:
        InvalidValue: it is something else.
    """
    scheme, mark, address = text.strip().rpartition("://")
    if mark and scheme not in {"http", "https"}:
        raise InvalidValue(f"{text[:64]!r} begins with neither http:// nor https://")
    host, port = split_address(address.rstrip("/"))
    return scheme or "http", host, port


class EtcdConnection:
    """The endpoints of one etcd."""

    def __init__(self, endpoints: Sequence[str], login: EtcdLogin, timeout_s: float) -> None:
        """Make the clients; nothing is asked yet.

        Raises:
            InvalidValue: the extra is not installed, or an endpoint is no address.
        """
        try:
            from etcd3gw.client import Etcd3Client  # noqa: PLC0415  (an extra)
        except ImportError:
            raise InvalidValue(
                "failoverEtcd is set, and the client is not installed: pip install "
                "'gantrymq[failover]'"
            ) from None
        if not endpoints:
            raise InvalidValue("failoverEtcd names no endpoint: say for example 127.0.0.1:2379")
        self._login = login
        self._token = ""
        self._clients = [
            Etcd3Client(
                host=host, port=port, protocol=scheme, timeout=timeout_s, api_path="/v3/",
                ca_cert=login.trust_path or None, cert_cert=login.cert_path or None,
                cert_key=login.key_path or None,
            )
            for scheme, host, port in map(split_endpoint, endpoints)
        ]  # fmt: skip
        for client in self._clients:
            client.session.trust_env = False  # no proxy stands between a broker and its etcd

    def post(self, path: str, content: dict[str, Any]) -> dict[str, Any]:
        """Ask one endpoint after the other until one answers.

        Raises:
            EtcdTrouble: none does, or none as it should.
        """
        problem = "no endpoint"
        for _ in range(len(self._clients)):
            client = self._clients[0]
            try:
                return self._ask(client, path, content)
            except Exception as error:  # noqa: BLE001 - the client's, requests' and urllib3's
                problem = _said(error)
                self._clients.append(self._clients.pop(0))
        raise EtcdTrouble(f"etcd does not answer: {problem}")

    def _ask(self, client: Any, path: str, content: dict[str, Any]) -> dict[str, Any]:  # noqa: ANN401
        url = client.get_url(path)
        if not self._login.user:
            return dict(client.post(url, json=content))
        token = self._token or self._log_in(client)
        try:
            return dict(client.post(url, json=content, headers={"Authorization": token}))
        except Exception as error:
            if not any(words in _said(error) for words in TOKEN_GONE):
                raise
        token = self._log_in(client)
        return dict(client.post(url, json=content, headers={"Authorization": token}))

    def _log_in(self, client: Any) -> str:  # noqa: ANN401
        """Return a new token."""
        who = {"name": self._login.user, "password": self._login.password()}
        self._token = str(client.post(client.get_url("/auth/authenticate"), json=who)["token"])
        return self._token


def _said(error: Exception) -> str:
    """Return what went wrong: the client keeps what etcd said apart."""
    detail = getattr(error, "detail_text", None)
    text = f"{error}: {detail}" if detail and detail != str(error) else str(error)
    return f"{type(error).__name__}: {text[:DETAIL_CHARACTERS_MAX].strip()}"
