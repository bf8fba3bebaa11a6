"""Writes `conf/broker.conf` and `conf/namesrv.conf`: every setting with its default and meaning.

    python tools/example_settings.py            write them anew (make conf)
    python tools/example_settings.py --check    say whether they are what they would be

The tables in the sources are what counts; the files are made from them, so that they cannot differ.
"""

from __future__ import annotations

import sys
import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from gantrymq.broker.settings import BrokerSettings, broker_properties, broker_rows  # noqa: E402
from gantrymq.namesrv.settings import (  # noqa: E402
    LIVE_NAMES,
    NamesrvSettings,
    write_settings,
)
from gantrymq.node.layouts import ABOUT, LAYOUTS  # noqa: E402
from gantrymq.store.settings import known_settings, read_settings  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from gantrymq.store.settings_kinds import Setting

WIDTH = 100
HOME = "$HOME"

BROKER_HEAD = """\
# Every setting of a broker, with its default. The names are those of Apache RocketMQ, whose files
# are read as they are. Give this file to it with
#
#   gantrymq broker -c conf/broker.conf          gantrymq server -c conf/broker.conf
#
# Take the # off a line to change it. `gantrymq broker -p -c FILE` prints what would hold, and -m
# what differs from the defaults. A name that is not known, or a value that is not allowed, is
# refused when the broker starts, and all of them at once. Sizes are in bytes and times in
# milliseconds unless the name says otherwise. What is called live can be changed while the broker
# runs (mqadmin updateBrokerConfig); such a change is kept in config/live.properties under the
# store's root and holds over this file.
#
# This file is made from the sources by tools/example_settings.py.
"""
NAMESRV_HEAD = """\
# Every setting of a name server, with its default. The names are those of Apache RocketMQ.
#
#   gantrymq namesrv -c conf/namesrv.conf
#
# Take the # off a line to change it; `gantrymq namesrv -p -c FILE` prints what would hold. Names
# that are not a name server's are passed over, so that it may share a file with a broker. What is
# called live can be changed while it runs (mqadmin updateNamesrvConfig).
#
# This file is made from the sources by tools/example_settings.py.
"""
NAMESRV_MEANINGS = {
    "listenPort": "port it listens at; 0 takes a free one",
    "bindAddress": "address it listens at; 0.0.0.0 by itself where aclEnable or insecure is true",
    "insecure": "let other machines in without access control, as Apache does; also --insecure",
    "metricsPort": "port of /metrics, /healthz and /readyz; -1 is none, 0 any that is free",
    "metricsBindAddress": "address of that port",
    "logFormat": "how lines of the log are written: text, or json, an object a line",
    "aclEnable": "check who asks: plain_acl.yml, users.toml (docs/security.md)",
    "aclPath": "directory of plain_acl.yml and acl/*.yml; else that of -c, or of kvConfigPath",
    "usersFile": "TOML file of users and roles; else users.toml beside plain_acl.yml, if any",
    "usersKeyFile": "key that the secrets in it are sealed with; else users.key beside it",
    "kvConfigPath": "file with key-value configuration, the only thing kept over a restart",
    "configStorePath": "file that settings changed over the wire are kept in",
    "orderMessageEnable": "put the order configuration of a topic into its route",
    "returnOrderTopicConfigToBroker": "tell brokers the order configuration when they register",
    "scanNotActiveBrokerInterval": "how often silent brokers are looked for",
    "unRegisterBrokerQueueCapacity": "without effect: a broker that leaves is removed at once",
    "supportActingMaster": "show the lowest slave as master where the master is gone",
    "enableAllTopicList": "answer requests for the list of all topics",
    "enableTopicList": "answer requests for the topics of a cluster, or with unit flags",
    "notifyMinBrokerIdChanged": "tell a group's brokers when the lowest id among them changes",
    "needWaitForService": "answer no routes in the beginning, until brokers have registered",
    "waitSecondsForService": "how long that beginning lasts, in seconds",
    "deleteTopicWithBrokerRegistration": "remove topics that a registration does not name",
}
TLS_HEAD = "TLS on the same port; without a certificate there is none. See docs/operating.md."
TLS = {
    "tls.server.mode": ("permissive", "disabled, permissive (plain text too), enforcing"),
    "tls.server.certPath": ("", "certificate and what leads to its issuer, PEM"),
    "tls.server.keyPath": ("", "its key, PEM"),
    "tls.server.keyPassword": ("", "password of the key, if it has one"),
    "tls.server.need.client.auth": ("none", "none, optional or require: certificates of clients"),
    "tls.server.trustCertPath": ("", "who signs them, PEM"),
    "tls.server.crlPath": ("", "lists of those that were revoked, PEM"),
}

CLIENT_TLS_HEAD = "TLS of the connections to name servers."
CLIENT_TLS = {
    "tls.enable": ("false", "speak TLS to them; true by itself where tls.server.mode=enforcing"),
    "tls.client.trustCertPath": ("", "who signs their certificates, PEM"),
    "tls.client.authServer": ("", "true checks them: by itself where trustCertPath is named"),
    "tls.client.certPath": ("", "certificate of this broker for those who ask for one, PEM"),
    "tls.client.keyPath": ("", "its key, PEM"),
    "tls.client.keyPassword": ("", "password of the key, if it has one"),
}


def _section(title: str) -> list[str]:
    return ["", f"# -- {title} ".ljust(WIDTH, "-"), ""]


def _entry(name: str, value: str, meaning: str, *notes: str) -> list[str]:
    """Return the lines of one setting."""
    said = "; ".join((meaning, *notes))
    lines = [f"# {said}"] if len(said) <= WIDTH - 2 else [f"# {one}" for one in (meaning, *notes)]
    return [*lines, f"#{name}={value}"]


def _rows(rows: Iterable[Setting], values: Mapping[str, str]) -> list[str]:
    lines: list[str] = []
    for row in rows:
        notes = [row.kind.allowed]
        if row.live:
            notes.append("live")
        if len(row.names) > 1:
            notes.append(f"also {', '.join(row.names[1:])}")
        lines += _entry(row.name, values[row.name], row.meaning, *notes)
    return lines


def _tls(head: str, settings: Mapping[str, tuple[str, str]]) -> list[str]:
    lines = [f"# {head}"]
    for name, (value, meaning) in settings.items():
        lines += _entry(name, value, meaning)
    return lines


def broker_text() -> str:
    """Return `conf/broker.conf`."""
    store = read_settings({}, home=Path(HOME)).properties()
    root = _entry("storePathRootDir", store["storePathRootDir"], "directory of the store")
    lines = [
        BROKER_HEAD.rstrip("\n"),
        *_section("the broker"),
        *_rows((row for _, row in broker_rows()), broker_properties(BrokerSettings())),
        *_section("its store"),
        *root,
        *_rows(known_settings(), store),
        *_section("TLS"),
        *_tls(TLS_HEAD, TLS),
        "",
        *_tls(CLIENT_TLS_HEAD, CLIENT_TLS),
    ]
    return "\n".join(lines) + "\n"


def namesrv_text() -> str:
    """Return `conf/namesrv.conf`."""
    lines = [NAMESRV_HEAD]
    for name, value in write_settings(NamesrvSettings()).items():
        notes = ["live"] if name in LIVE_NAMES else []
        lines += _entry(name, value, NAMESRV_MEANINGS[name], *notes)
    return "\n".join([*lines, *_section("TLS"), *_tls(TLS_HEAD, TLS)]) + "\n"


def layout_text(layout: str, file: str) -> str:
    """Return `conf/LAYOUT/FILE.properties`: one broker of a deployment."""
    about = textwrap.fill(ABOUT[layout], WIDTH - 2)
    lines = [f"# {line}" for line in (f"{layout}:", *about.splitlines())]
    lines += [
        "# Give it name servers with -n host:port;host:port, or with namesrvAddr here. On several",
        "# machines: aclEnable=true with accounts or users (docs/security.md), or --insecure.",
        "",
    ]
    lines += [f"{name}={value}" for name, value in LAYOUTS[layout][file].items()]
    return "\n".join(lines) + "\n"


FILES: dict[str, Callable[[], str]] = {
    "broker.conf": broker_text,
    "namesrv.conf": namesrv_text,
    **{
        f"{layout}/{file}.properties": partial(layout_text, layout, file)
        for layout, files in LAYOUTS.items()
        for file in files
    },
}


def main() -> int:
    """Write the files, or check them; return the exit status."""
    status = 0
    for name, text in FILES.items():
        path = ROOT / "conf" / name
        if "--check" not in sys.argv[1:]:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text(), encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text():
            print(f"conf/{name} is not what the sources say; run `make conf`", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
