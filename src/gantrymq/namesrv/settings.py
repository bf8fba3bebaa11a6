"""The settings of a name server: Apache's `NamesrvConfig`, typed, and what may change at run time.

One table says which names there are, what their values can be, and which of them a request may set.
Apache lets a request set everything except a list of names; here it is the other way round, so that
no path, address or credential can ever be set from the network. Settings of Apache's thread pools
and of its embedded controller have no meaning here: a file may hold them, and they are passed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from gantrymq.errors import InvalidValue, shown
from gantrymq.wire.integers import parse_integer
from gantrymq.wire.response_errors import NoPermission

if TYPE_CHECKING:
    from collections.abc import Mapping


class NamesrvSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a name server behaves; the defaults are Apache's, but for where it listens."""

    listen_port: int = 9876
    bind_address: str = "127.0.0.1"
    insecure: bool = False
    """Let other machines in although nobody checks who asks."""
    metrics_port: int = -1
    """Of /metrics, /healthz and /readyz; -1 is none, 0 any that is free."""
    metrics_bind_address: str = "127.0.0.1"
    log_format: str = "text"
    acl: bool = False
    """Check who asks."""
    acl_path: str = ""
    """Where the account files are; beside `kvConfigPath` unless it is said."""
    users_file: str = ""
    """The file of users; `users.toml` beside the account files unless it is said."""
    users_key_file: str = ""
    kv_config_path: str = "~/namesrv/kvConfig.json"
    config_store_path: str = "~/namesrv/namesrv.properties"
    """Where settings that a request changed are kept."""
    order_in_routes: bool = False
    """Put the order configuration of a topic into its route."""
    order_to_brokers: bool = True
    """Answer a registration with the order configuration of all topics."""
    scan_interval_ms: int = 5000
    """How often silent brokers are looked for."""
    unregister_queue_capacity: int = 3000
    """Kept for Apache's files; a broker that leaves is removed at once, and nothing queues."""
    acting_masters: bool = False
    """Show the lowest slave as master where the master is gone and the group allows it."""
    list_all_topics: bool = True
    list_topics: bool = True
    """Of a cluster, or with unit flags."""
    tell_lowest_changed: bool = False
    """Tell the brokers of a group when the lowest id among them is another."""
    wait_for_service: bool = False
    """Answer no routes in the beginning, when not every broker has registered yet."""
    wait_for_service_s: int = 45
    drop_missing_topics: bool = False
    """Remove topics that a registration does not name. Brokers must not announce single topics in
    registrations then (their `enableSingleTopicRegister`)."""


class _Setting(NamedTuple):
    """One setting."""

    attribute: str
    kind: type
    live: bool
    """A request may change it."""
    minimum: int = 0
    maximum: int = 0
    words: tuple[str, ...] = ()
    """What a text can be, if it cannot be anything."""
    may_be_empty: bool = False


_TABLE: Final[Mapping[str, _Setting]] = {
    "listenPort": _Setting("listen_port", int, live=False, minimum=0, maximum=65535),
    "bindAddress": _Setting("bind_address", str, live=False),
    "insecure": _Setting("insecure", bool, live=False),
    "metricsPort": _Setting("metrics_port", int, live=False, minimum=-1, maximum=65535),
    "metricsBindAddress": _Setting("metrics_bind_address", str, live=False),
    "logFormat": _Setting("log_format", str, live=False, words=("text", "json")),
    "aclEnable": _Setting("acl", bool, live=False),
    "aclPath": _Setting("acl_path", str, live=False, may_be_empty=True),
    "usersFile": _Setting("users_file", str, live=False, may_be_empty=True),
    "usersKeyFile": _Setting("users_key_file", str, live=False, may_be_empty=True),
    "kvConfigPath": _Setting("kv_config_path", str, live=False),
    "configStorePath": _Setting("config_store_path", str, live=False),
    "orderMessageEnable": _Setting("order_in_routes", bool, live=True),
    "returnOrderTopicConfigToBroker": _Setting("order_to_brokers", bool, live=True),
    "scanNotActiveBrokerInterval": _Setting(
        "scan_interval_ms", int, live=True, minimum=100, maximum=600_000
    ),
    "unRegisterBrokerQueueCapacity": _Setting(
        "unregister_queue_capacity", int, live=True, minimum=1, maximum=1_000_000
    ),
    "supportActingMaster": _Setting("acting_masters", bool, live=True),
    "enableAllTopicList": _Setting("list_all_topics", bool, live=True),
    "enableTopicList": _Setting("list_topics", bool, live=True),
    "notifyMinBrokerIdChanged": _Setting("tell_lowest_changed", bool, live=True),
    "needWaitForService": _Setting("wait_for_service", bool, live=True),
    "waitSecondsForService": _Setting(
        "wait_for_service_s", int, live=True, minimum=0, maximum=3600
    ),
    "deleteTopicWithBrokerRegistration": _Setting("drop_missing_topics", bool, live=True),
}

SETTING_NAMES: Final = frozenset(_TABLE)
"""Names that `read_settings` understands."""
LIVE_NAMES: Final = tuple(sorted(name for name, setting in _TABLE.items() if setting.live))
"""Names that a request may set."""


def read_settings(texts: Mapping[str, str]) -> NamesrvSettings:
    """Return the settings of a file; names that are not a name server's are passed over.

    Raises:
        InvalidValue: values that cannot be; all of them are named.
    """
    return _changed(NamesrvSettings(), {n: t for n, t in texts.items() if n in _TABLE})


def change_settings(settings: NamesrvSettings, texts: Mapping[str, str]) -> NamesrvSettings:
    """Return the settings as a request wants them.

    Raises:
        NoPermission: a name among them may not be set by a request.
        InvalidValue: values that cannot be; all of them are named.
    """
    for name in texts:
        if name not in LIVE_NAMES:
            raise NoPermission(
                f"{shown(name)!r} cannot be set by a request: change it in the name server's file "
                f"and restart it. A request may set {', '.join(LIVE_NAMES)}."
            )
    return _changed(settings, texts)


def write_settings(settings: NamesrvSettings, *, live_only: bool = False) -> dict[str, str]:
    """Return the settings as texts by name; the other direction of `read_settings`."""
    return {
        name: _text(getattr(settings, setting.attribute))
        for name, setting in _TABLE.items()
        if setting.live or not live_only
    }


def _text(value: object) -> str:
    """Return a value as Java writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _changed(settings: NamesrvSettings, texts: Mapping[str, str]) -> NamesrvSettings:
    """Return settings with other values."""
    values: dict[str, object] = {}
    problems: list[str] = []
    for name, text in texts.items():
        setting = _TABLE[name]
        value, allowed = _parse(setting, text.strip())
        if value is None:
            problems.append(f"{name} must be {allowed}, not {shown(text)!r}")
        values[setting.attribute] = value
    if problems:
        raise InvalidValue("; ".join(problems))
    return msgspec.structs.replace(settings, **values)


def _parse(setting: _Setting, text: str) -> tuple[str | int | bool | None, str]:
    """Return the value of a text, or None and what is allowed."""
    if setting.kind is bool:
        return {"true": True, "false": False}.get(text.lower()), "true or false"
    if setting.kind is int:
        number = parse_integer(text, 32)
        inside = number is not None and setting.minimum <= number <= setting.maximum
        allowed = f"a whole number from {setting.minimum} to {setting.maximum}"
        return (number if inside else None), allowed
    if setting.words:
        return (text if text in setting.words else None), f"one of {', '.join(setting.words)}"
    return (text if text or setting.may_be_empty else None), "a text that is not empty"
