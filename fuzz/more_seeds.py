"""Good inputs for the targets that have no golden data: HTTP, TLS, files and command lines."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from fuzz import commands, files, http, tls
from gantrymq.broker.journal.changes import Changes
from gantrymq.broker.journal.changes import encode as encode_changes
from gantrymq.broker.timer.progress import Progress
from gantrymq.broker.timer.takeover import Check
from gantrymq.cli.daily.table import ALONE, NOUNS
from gantrymq.cli.mqadmin.command import options_of
from gantrymq.cli.mqadmin.table import SPECS
from gantrymq.cluster.epoch_file import LastWritten
from gantrymq.dashboard.api.table import ENDPOINTS
from gantrymq.store.checkpoint import PAGE_BYTES, Checkpoint
from gantrymq.testing.clock import VirtualClock
from gantrymq.wire.bodies.assignment import RequestModeSetting
from support.golden import STORE_LABELS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gantrymq.dashboard.calls import Endpoint

ROOT: Final = Path(__file__).parents[1]
MANY: Final = 255
"""A second byte that has a request come in one piece."""
_ASKED: Final = re.compile(
    r"""call\.(?:text|raw|maybe|number|maybe_number|flag|words|mapping)\(\s*"(\w+)\""""
)
VALUES: Final = {
    "topic": "Orders", "group": "billing", "broker": "broker-a", "id": "1", "queue": "0",
    "offset": "0", "page": "1", "rows": "5", "name": "Orders", "body": "hello", "time": "now",
}  # fmt: skip


def _blocks(page: str, language: str) -> list[bytes]:
    """Return the examples of a page in one language."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return [found.encode() for found in re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)]


# -- HTTP ------------------------------------------------------------------------------------------


def metrics() -> list[bytes]:
    """Return what Prometheus, a browser and others ask."""
    asked = [
        b"GET /%s HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n" % path
        for path in (b"metrics", b"healthz", b"readyz", b"metrics?name[]=x", b"", b"other")
    ]
    asked += [b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", b"GET /metrics HTTP/1.0"]
    asked += [b"HEAD /healthz HTTP/1.1\r\n\r\n", b"hello\r\n\r\n", b"\x16\x03\x01\x02\x00"]
    asked.append(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 9000 + b"\r\n\r\n")
    return [bytes([size]) + one for one in asked for size in (0, MANY)]


def _values(endpoint: Endpoint) -> dict[str, str]:
    """Return a value for each name that the module of an endpoint asks for."""
    source = inspect.getsource(sys.modules[endpoint.work.__module__])
    names = dict.fromkeys((*endpoint.about, *_ASKED.findall(source)))
    return {name: VALUES.get(name, "1") for name in names}


def _request(endpoint: Endpoint) -> bytes:
    values = _values(endpoint)
    head = b"Host: 127.0.0.1\r\nCookie: a=b; gantrymq_session=%b\r\n" % http.COOKIE
    if not endpoint.is_change:
        query = "&".join(f"{name}={value}" for name, value in values.items())
        return f"{endpoint.method} {endpoint.path}?{query} HTTP/1.1\r\n".encode() + head + b"\r\n"
    body = msgspec.json.encode(values)
    head += b"X-CSRF-Token: %b\r\nContent-Type: application/json\r\n" % http.TOKEN
    head += b"Content-Length: %d\r\n\r\n" % len(body)
    return f"{endpoint.method} {endpoint.path} HTTP/1.1\r\n".encode() + head + body


def dashboard() -> list[bytes]:
    """Return a request for each function, as an admin; and what a browser asks before it."""
    seeds = [bytes([3, MANY]) + _request(endpoint) for endpoint in ENDPOINTS]
    login = b'{"user":"admin","password":"long enough"}'
    asked = [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /api/me HTTP/1.1\r\nHost: [::1]:8080\r\nCookie: x\r\n\r\n" * 2,
        (
            b"POST /api/login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%b" % (len(login), login)
        ),
        (
            b"POST /api/logout HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: application/json\r\nOrigin: http://127.0.0.1\r\n\r\n"
            b"2\r\n{}\r\n0\r\n\r\n"
        ),
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    ]
    return seeds + [bytes([who, MANY]) + one for one in asked for who in (0, 1)]


# -- TLS -------------------------------------------------------------------------------------------


def hellos() -> list[bytes]:
    """Return beginnings of connections, and for each way to go on what there may be."""
    hello = tls.hello("localhost")
    said = [b"", tls.PROBE, hello, hello[:20], b"\x15\x03\x03\x00\x02\x02\x28"]
    said += [b"\x17\x03\x03\x00\x10" + bytes(16), b"\x14\x03\x03\x00\x01\x01", b"\x16"]
    said += [b"GET / HTTP/1.1\r\n\r\n", b"localhost", b"a" * 190, b"\xff.example"]
    said += [bytes([9, 1, 43, 255, 44, 0, 60, 7]) + hello]
    return [bytes([way]) + one for way in range(tls.WAYS) for one in said]


# -- files -----------------------------------------------------------------------------------------


def accounts() -> list[bytes]:
    """Return the examples of the page, in the forms that YAML has for them."""
    (page,) = _blocks("security.md", "yaml")
    return [
        page,
        page.replace(b"  - ", b"- "),
        page.replace(b"secret-of-orders", b'"secret \\u00e4 of # orders"'),
        b'globalWhiteRemoteAddresses: ["*"]\n'.replace(b' ["*"]', b'\n- "*"\n- 10.0.0.{1,2}'),
        (
            b"accounts:\n- accessKey: RocketMQ\n  secretKey: '12345678'\n  admin: yes\n"
            b"  whiteRemoteAddress: 10.0.1-20.*\ndataVersion:\n- counter: 3\n  timestamp: 17\n"
        ),
        b"accounts: []\nglobalWhiteRemoteAddresses:\n- fe80::1-200:*\n- 192.168.0.7,10.0.0.1\n",
        b"",
    ]


def users() -> list[bytes]:
    """Return the examples of the page, with a secret that can be opened, and a key file."""
    sealed = files.SEALED.encode()
    return [
        *_blocks("security.md", "toml"),
        b'[users.orders]\nrole = "admin"\nsecret = "%b"\n' % sealed,
        (
            b'[users.mailer]\ncertificates = ["dns:mailer.example.com", "cn:\\u00e4"]\n'
            b'rules = [ { topics = ["Mails*"], actions = ["publish", "look"] } ]\n'
        ),
        b"\xff" + bytes(range(32)).hex().encode() + b"\n",
        b"\xff",
        b"",
    ]


def declared() -> list[bytes]:
    """Return the example of the page, and the same as JSON."""
    return [
        *_blocks("admin.md", "toml"),
        (
            b'{"topics":{"Orders":{"queues":8,"perm":"RW-"}},"groups":{"billing":{"orderly":true}},'
            b'"permissions":[{"subject":"User:a","resource":"Topic:b","actions":["Pub"],'
            b'"decision":"Allow"}]}'
        ),
    ]


def config(store_files: Callable[[str, str], Iterator[tuple[str, bytes]]]) -> list[bytes]:
    """Return Apache's own files and ours, each behind the number of its reader."""
    found: list[tuple[str, bytes]] = []
    for label in STORE_LABELS:
        for name, content in store_files(label, "/config/"):
            if name in files.READERS and len(content) < 1 << 13:
                found.append((name, content))
    clock = VirtualClock()
    found += [(name, make(clock).encode()) for name, make in files.STATES.items()]
    minute = clock.now_ms() // 60_000
    changes = Changes(offsets={"T@g": {0: 3}}, delays={1: 2}, topics={"T": None})
    changes.modes[("T", "g")] = RequestModeSetting(topic="T", consumer_group="g")
    found += [
        ("offsetStops.json", b'{"stopped":[["g","T",0,3]]}'),
        ("consumerOrderInfo.json", b'{"table":{"T@g":{"0":{"popTime":1,"i":2,"o":[3,1],"l":4}}}}'),
        ("kvConfig.json", b'{"configTable":{"ORDER_TOPIC_CONFIG":{"T":"broker-a:4"}}}'),
        ("epoch.json", msgspec.json.encode(LastWritten(7, "boot", doubtful=True))),
        ("live.properties, restored", b"flushIntervalCommitLog=200\n#x\ndefaultQueryMaxNum=9"),
        ("timerslots/progress", msgspec.json.encode(
            Progress(read_offset=3, next_second=minute * 60, slots={str(minute): (32, 1)},
                     counts={"T": 2}, apache="00"))),
        ("timercheck", Check(clock.now_ms(), 1, 2, 3, 4, 5, 6).encode()[:64]),
        ("checkpoint", Checkpoint(files.PLACE, bytes(PAGE_BYTES)).image()),
        ("checkpoint", b"\0\0\1\x8b\xcf\xe5\x68\0" * 5),
        ("journal", encode_changes(changes)),
        ("any", b'{"a":[1,{"b":null}],0:1}'),
    ]  # fmt: skip
    return [bytes([files.NAMES.index(name)]) + content for name, content in found]


# -- command lines ---------------------------------------------------------------------------------


def arguments() -> list[bytes]:
    """Return every command with every option that it has, one at a time."""
    lines: list[list[str]] = []
    flags = ["-p", "-m", "-c x.conf", "-n 127.0.0.1:9876", "--shards 2", "--log info",
             "--log-format json", "--metrics-port 0", "--help", "drain"]  # fmt: skip
    lines += [[role, *flag.split()] for role in commands.PRINTED for flag in flags]
    for name, spec in SPECS.items():
        needed = [word for written, _, takes, must in options_of(spec) if must
                  for word in (written[0], *(["1"] if takes else []))]  # fmt: skip
        lines.append(["admin", name, *needed])
        lines += [
            ["admin", name, *needed, written[-1], *(["Orders"] if takes else [])]
            for written, _, takes, must in options_of(spec)
            if not must
        ]
    for noun, verbs in [*NOUNS.items(), *((noun, {"": verb}) for noun, verb in ALONE.items())]:
        for name, verb in verbs.items():
            lines += _daily([noun, *([name] if name else [])], verb.arguments)
    lines += [line.split() for line in (
        "user add a --role admin", "user list --json", "user remove a --force", "user passwd a",
        "user add b --topic T*=publish --group g=subscribe --certificate cn:x --no-secret",
        "store inspect s", "store verify s --json", "store rebuild s --to t --known-topics",
        "store export s --jsonl -o f", "completion bash", "--version", "--help",
    )]  # fmt: skip
    found = []
    for line in lines:
        role = line[0] if line[0] in commands.ROLES else ""
        words = line[1:] if role else line
        found.append(bytes([commands.ROLES.index(role)]) + "\0".join(words).encode())
    return found


def _daily(begin: list[str], options: str) -> Iterator[list[str]]:
    words = options.split()
    line = [*begin, *("now" for word in words if not word.startswith(("-", "[")))]
    yield line
    for word in words:
        if word.startswith("-"):
            flag, equals, _ = word.partition("=")
            yield [*line, flag.split("/")[-1].rstrip("!"), *(["30m"] if equals else []), "--json"]
