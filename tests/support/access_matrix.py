"""Every request code and what it needs; accounts and users of every kind.

The table is written by hand, from what a code does and not from the code under test. It names every
request code there is, so that a new one has to be put in its place.
"""

from __future__ import annotations

from asyncio import Future
from typing import TYPE_CHECKING

import msgspec

from gantrymq.security.access import EXCEPTION
from gantrymq.security.accounts import Secret
from gantrymq.security.sealing import make_key
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.frame import FrameParser
from gantrymq.wire.peer import RawReply
from support.accounts import (
    ADMIN,
    BOTH,
    HOST,
    PUBLISHER,
    SUBSCRIBER,
    WITHOUT,
    WRONG,
    Signer,
    signed_request,
)
from support.samples import LONG_NAMES, pull_fields, send_fields

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gantrymq.wire.peer import Pending
    from support.broker_rig import BrokerRig
    from support.client_peers import FakePeer

# What is needed: a permission to publish, to subscribe, either, any account; to accounts the rest
# is one thing, an administrator's, and users have steps: looking, managing by name, operating.
TABLE: dict[str, set[int]] = {
    "publish": {10, 310, 320, 370},
    "subscribe": {
        11, 361, 36, 12, 321, 34, 35, 38, 14, 15, 41, 42, 400,
        200050, 200051, 200052, 200053, 200054, 200055, 200151,
    },
    "either": {29, 30, 31, 32, 202, 351, 300, 203, 208, 352, 343, 345, 303},
    "account": {
        33, 37,  # and a permission for the topic of the message that they name
        46, 101, 105, 106, 324, 325, 901,
    },
    "view": {
        13, 21, 22, 23, 26, 28, 43, 45, 60, 61, 201, 204, 206, 214, 219, 223, 224, 304, 305, 307,
        308, 311, 312, 313, 315, 317, 319, 328, 402, 907, 1007, 2003,
    },
    "manage": {17, 215, 216, 200, 207, 222},
    "operate": {18, 205, 217, 225, 309, 314, 323, 327, 353, 401, 513},
    "administrator": {
        25, 27, 39, 40, 47, 50, 51, 52, 53, 54, 100, 102, 103, 104, 209, 210, 211, 212, 213, 220,
        221, 301, 302, 306, 316, 318, 322, 326, 329, 354, 355, 902, 903, 904, 905, 906, 908,
        *range(1001, 1007), *range(1008, 1019), 2001, 2002, 2004,
        *range(3001, 3011), 5001, 200056, *range(200070, 200080),
    },
}  # fmt: skip
ROLES: dict[str, tuple[Signer | None, str, set[str]]] = {
    "nobody": (None, "10.0.0.1:1", set()),
    "wrong signature": (WRONG, "10.0.0.1:1", set()),
    "another's address": (HOST, "10.8.8.9:1", set()),
    "no permission": (WITHOUT, "10.0.0.1:1", {"account"}),
    "PUB": (PUBLISHER, "10.0.0.1:1", {"account", "publish", "either"}),
    "SUB": (SUBSCRIBER, "10.0.0.1:1", {"account", "subscribe", "either"}),
    "PUB|SUB": (BOTH, "10.0.0.1:1", {"account", "publish", "subscribe", "either"}),
    "administrator": (ADMIN, "10.0.0.1:1", set(TABLE)),
    "white account": (HOST, "10.8.8.8:1", set(TABLE)),
    "white address": (None, "10.9.9.7:1", set(TABLE)),
}
_PUBLISH, _SUBSCRIBE = {"account", "publish", "either"}, {"account", "subscribe", "either"}
USER_ROLES: dict[str, tuple[str, set[str]]] = {
    "without": ("", {"account"}),
    "viewer": ('role = "viewer"', {"account", "either", "view"}),
    "operator": ('role = "operator"', {"account", "either", "view", "manage", "operate"}),
    "admin": ('role = "admin"', set(TABLE)),
    "sender": (
        'rules = [{topics = ["T"], actions = ["publish"]}, {groups = ["G"], actions = ["look"]}]',
        _PUBLISH,
    ),
    "reader": (
        'rules = [{ topics = ["*"], groups = ["G*"], actions = ["subscribe"] }]', _SUBSCRIBE
    ),
    "looker": (
        'rules = [{ topics = ["T*"], groups = ["G"], actions = ["look"] }]', {"account", "either"}
    ),
    "manager": (
        'rules = [{ topics = ["T*"], groups = ["*"], actions = ["manage"] }]',
        {"account", "manage"},
    ),
    "neighbour": (
        'rules = [{ topics = ["Ta", "Tb*"], actions = ["publish", "subscribe", "manage"] }]',
        {"account"},
    ),
    "shopper": ('role = "shop"', {"account", "either", "view", "publish"}),
}  # fmt: skip
"""A user's name, what the file says of it, and what it may."""
OWN_ROLE = """\
[roles.shop]
base = "viewer"
rules = [{ topics = ["T"], actions = ["publish"] }]
"""
CODES = sorted(RequestCode)
QUEUE = {"topic": "T", "brokerName": "broker-a", "queueId": 0}
BODIES = {
    200: {"groupName": "G"},
    34: {"clientID": "c", "producerDataSet": [], "consumerDataSet": [{
        "groupName": "G", "subscriptionDataSet": [{"topic": "T", "subString": "*"}]}]},
    41: {"consumerGroup": "G", "clientId": "c", "mqSet": [QUEUE]},
    42: {"consumerGroup": "G", "clientId": "c", "mqSet": [QUEUE]},
    400: {"topic": "T", "consumerGroup": "G", "clientId": "c", "strategyName": "AVG"},
    200151: {"brokerName": "broker-a", "acks": [
        {"c": "G", "t": "T", "so": 0, "q": 0, "rq": 0, "pt": 1, "it": 1}]},
}  # fmt: skip


def user_signer(name: str) -> Signer:
    """Return who signs as a user of `write_users`."""
    return Signer(name, f"secret-of-{name}")


def write_users(folder: Path, more: str = "") -> Path:
    """Write users of every kind, and the key of their secrets; return the file."""
    key = make_key(folder / "users.key")
    texts = [more or OWN_ROLE]
    for name, (text, _) in USER_ROLES.items():
        sealed = key.seal(name, Secret(user_signer(name).secret_key))
        texts.append(f'[users.{name}]\nsecret = "{sealed}"\n{text}\n')
    path = folder / "users.toml"
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


def request(
    code: int, signer: Signer | None, *, binary: bool = False, topic: str = "T", flag: int = 0
) -> bytes:
    """Return a request about a topic and group G that says all that is asked of it."""
    named = {"topic": topic, "group": "G", "consumerGroup": "G", "groupName": "G",
             "clientID": "c", "queueId": 0}  # fmt: skip
    if code in {310, 320, 325}:
        fields = send_fields(b=topic)
    elif code in {10, 324}:
        fields = {LONG_NAMES[name]: text for name, text in send_fields(b=topic).items()}
    elif code in {11, 361}:
        fields = pull_fields(topic=topic, consumerGroup="G", queueId=0)
    else:
        fields = named
    if code in {324, 325}:
        fields["topic" if code == 324 else "b"] = "DefaultCluster_REPLY_TOPIC"
    if code in {36, 33}:
        fields |= {"offset": 10**9, "delayLevel": 0}
    if code == 37:
        fields |= {"producerGroup": "P", "tranStateTableOffset": 0, "commitLogOffset": 10**9,
                   "commitOrRollback": 8, "msgId": "x"}  # fmt: skip
    body = msgspec.json.encode(BODIES[code]) if code in BODIES else b"body"
    return signed_request(signer, code, fields, body, binary=binary, flag=flag)


def answered(rig: BrokerRig, data: bytes, peer: FakePeer | None = None) -> list[Pending]:
    """Return what is answered by now, and give up what waits."""
    pendings = rig.take(data, peer)
    rig.turns()
    for pending in pendings:
        if isinstance(pending, Future) and not pending.done():
            pending.cancel()
    rig.turns()
    return [one for one in pendings if not (isinstance(one, Future) and one.cancelled())]


def refusals(pendings: Iterable[Pending]) -> list[str]:
    """Return the sentences of the answers that are refusals of access control."""
    found = []
    for pending in pendings:
        answer = pending.result() if isinstance(pending, Future) and pending.done() else pending
        if isinstance(answer, RawReply):
            (answer,) = FrameParser().feed(b"".join(map(bytes, answer.parts)))
        remark = str(getattr(answer, "remark", None) or "")
        if getattr(answer, "code", 0) == 1 and remark.startswith(EXCEPTION):
            found.append(remark)
    return found


def expected(code: int, role: str) -> bool:
    """Tell whether a role may make a request."""
    return kind_of(code) in ROLES[role][2]


def kind_of(code: int) -> str:
    """Return what a request needs."""
    return next(kind for kind, codes in TABLE.items() if code in codes)
