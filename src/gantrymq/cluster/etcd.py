"""What a group keeps in etcd; `etcd_connection` says how it is reached.

    PREFIX/CLUSTER/BROKER_NAME/state               `GroupState`
    PREFIX/CLUSTER/BROKER_NAME/members/SESSION     `Member`, with the lease that names the session

Every call blocks, for a bounded time.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import msgspec

from gantrymq.cluster.etcd_connection import EtcdConnection, EtcdLogin, EtcdTrouble
from gantrymq.cluster.group_state import GroupState, Member, View

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Etcd", "EtcdTrouble"]

PREFIX: Final = "/gantrymq"


def _text(value: bytes | str) -> str:
    return base64.b64encode(value if isinstance(value, bytes) else value.encode()).decode()


class Etcd:
    """One group's records."""

    def __init__(
        self,
        endpoints: Sequence[str],
        cluster: str,
        name: str,
        timeout_s: float = 1.0,
        login: EtcdLogin | None = None,
    ) -> None:
        """Use the endpoints, `host:port` or with `https://` before it.

        Raises:
            InvalidValue: the extra is not installed, or an endpoint is no address.
        """
        self._post = EtcdConnection(endpoints, login or EtcdLogin(), timeout_s).post
        self._root = f"{PREFIX}/{cluster}/{name}"

    # -- leases -----------------------------------------------------------------------------------

    def grant(self, seconds: int) -> str:
        """Return a new lease."""
        return str(self._post("/lease/grant", {"TTL": seconds, "ID": 0})["ID"])

    def renew(self, lease: str) -> bool:
        """Renew a lease; False if it is gone."""
        answer = self._post("/lease/keepalive", {"ID": lease})
        return int(answer.get("result", {}).get("TTL", 0)) > 0

    def revoke(self, lease: str) -> None:
        """End a lease: what hangs on it is removed at once."""
        self._post("/lease/revoke", {"ID": lease})

    # -- records ----------------------------------------------------------------------------------

    def put_member(self, member: Member) -> None:
        """Tell the others that a member lives, as long as its lease does."""
        self._post(
            "/kv/put",
            {
                "key": _text(self._member_key(member.session)),
                "value": _text(msgspec.json.encode(member)),
                "lease": member.session,
            },
        )

    def view(self) -> View:
        """Return everything, as it is at one moment."""
        begin, behind = f"{self._root}/", f"{self._root}0"
        answer = self._post("/kv/range", {"key": _text(begin), "range_end": _text(behind)})
        state, revision = None, 0
        members: dict[str, Member] = {}
        try:
            for row in answer.get("kvs", ()):
                value = base64.b64decode(row.get("value", ""))
                if base64.b64decode(row["key"]).decode() == f"{self._root}/state":
                    state = msgspec.json.decode(value, type=GroupState)
                    revision = int(row["mod_revision"])
                else:
                    member = msgspec.json.decode(value, type=Member)
                    members[member.session] = member
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise EtcdTrouble(f"etcd holds under {begin} what is no group's: {error}") from error
        return View(state, revision, members)

    def swap(self, seen: View, state: GroupState, gone: str | None = None) -> bool:
        """Put a state in place of the one that was seen; False if there is another by now.

        With `gone`, that session must have ended.
        """
        compare = [_unchanged(f"{self._root}/state", seen.revision)]
        if gone is not None:
            compare.append(_unchanged(self._member_key(gone), 0))
        put = {"key": _text(f"{self._root}/state"), "value": _text(msgspec.json.encode(state))}
        answer = self._post(
            "/kv/txn", {"compare": compare, "success": [{"request_put": put}], "failure": []}
        )
        return bool(answer.get("succeeded", False))

    def _member_key(self, session: str) -> str:
        return f"{self._root}/members/{session}"


def _unchanged(key: str, revision: int) -> dict[str, Any]:
    return {
        "key": _text(key), "result": "EQUAL", "target": "MOD", "mod_revision": str(revision),
    }  # fmt: skip
