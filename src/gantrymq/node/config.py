"""From RocketMQ's `.properties` files and command-line flags to settings.

One file feeds broker, store and listener. All that is wrong with it is said at once.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from gantrymq.broker.settings import BrokerSettings, broker_properties, broker_rows
from gantrymq.errors import ContentError, InvalidValue
from gantrymq.model.secrets import masked
from gantrymq.namesrv import settings as namesrv
from gantrymq.node.etcd_access import wrong_failover
from gantrymq.node.exposure import default_address
from gantrymq.node.switches import refused_in_name_servers, refused_switches
from gantrymq.store.settings import (
    BrokerRole,
    InvalidSettings,
    StoreSettings,
    read_settings,
    unknown_names,
)
from gantrymq.store.settings_names import FOREIGN, OF_THE_CONTROLLER
from gantrymq.transport.addresses import split_address
from gantrymq.transport.tls import ClientTls, ServerTls, TlsMode
from gantrymq.wire.bodies.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gantrymq.namesrv.settings import NamesrvSettings


log = logging.getLogger(__name__)

APACHE_METRICS_PORT: Final = 5557
"""Apache's default for Prometheus, and the one of `gantrymq server`."""
COPIED_NAMES: Final = {
    "storePathConsumeQueue": "consumequeue",
    "storePathIndex": "index",
    "storeCheckpoint": "checkpoint",
    "abortFile": "abort",
}
"""Names that stand in many files, and where below the root that is which they speak of."""


class BrokerConfig(NamedTuple):
    """Everything that a broker's file says."""

    broker: BrokerSettings
    store: StoreSettings
    tls: ServerTls
    client_tls: ClientTls | None = None
    """How it speaks to name servers; None is without TLS."""

    def properties(self) -> dict[str, str]:
        """Return all of it under RocketMQ's names."""
        return {**self.store.properties(), **broker_properties(self.broker)}


def read_file(path: Path) -> dict[str, str]:
    """Return the settings of a file.

    Raises:
        InvalidValue: it cannot be read, or is not such a file.
    """
    try:
        return dict(SETTINGS.decode(path.read_bytes()))
    except OSError as error:
        raise InvalidValue(f"{path} cannot be read: {error.strerror or error}") from None
    except ContentError as error:
        raise InvalidValue(f"{path} is not a settings file: {error.problem}") from None


def read_broker_settings(properties: Mapping[str, str]) -> BrokerSettings:
    """Return what the properties say about the broker itself.

    Raises:
        InvalidSettings: values that are not allowed.
    """
    values: dict[str, object] = {}
    problems: list[str] = []
    for attribute, row in broker_rows():
        text = next((properties[name] for name in row.names if name in properties), None)
        if text is None:
            continue
        try:
            values[attribute] = row.kind.parse(text.strip())
        except ValueError:
            problems.append(f"{row.name} is {text.strip()!r}; it must be {row.kind.allowed}")
    if problems:
        raise InvalidSettings(problems)
    return BrokerSettings(**values)  # type: ignore[arg-type]


def wrong_name_servers(broker: BrokerSettings) -> Iterator[str]:
    """Yield a sentence for every name server whose address is none."""
    for address in broker.name_servers.split(";"):
        try:
            if address.strip():
                split_address(address)
        except InvalidValue as error:
            yield f"namesrvAddr: {error}; several are written host:port;host:port"


def wrong_replication_tls(broker: BrokerSettings) -> Iterator[str]:
    """Yield a sentence if the certificates of replication are there in part."""
    paths = (broker.ha_cert_path, broker.ha_key_path, broker.ha_trust_path)
    if any(paths) and not all(paths):
        yield (
            "haTlsCertPath, haTlsKeyPath and haTlsTrustCertPath go together: without all three "
            "nobody knows who copies the log"
        )


def wrong_access(broker: BrokerSettings) -> Iterator[str]:
    """Yield a sentence for everything about access control that cannot be."""
    if broker.acl_own_key and not broker.acl:
        yield (
            "aclBrokerAccessKey is set and aclEnable is not true: its secret is in the account "
            "files, which are read with access control alone"
        )
    if broker.users_file and not broker.acl:
        yield (
            f"usersFile is {broker.users_file} and aclEnable is not true: its rules would hold for "
            "nobody; set aclEnable=true, or leave it out"
        )
    if broker.users_key_file and not broker.acl:
        yield "usersKeyFile is set and aclEnable is not true: set that, or leave it out"


def is_bound_by_default(properties: Mapping[str, str]) -> bool:
    """Tell whether nobody said where to listen."""
    return not properties.get("bindAddress", "").strip()


def with_apache_metrics(properties: Mapping[str, str]) -> Mapping[str, str]:
    """Return the properties with Apache's names for the port of metrics understood.

    A file that says `metricsExporterType=PROM` has it, at `metricsPromExporterPort`, unless it
    says otherwise under the names that are ours.
    """
    if properties.get("metricsExporterType", "").strip().upper() != "PROM":
        return properties
    told = {"metricsPort": properties.get("metricsPromExporterPort", str(APACHE_METRICS_PORT))}
    if properties.get("metricsPromExporterHost", "").strip():
        told["metricsBindAddress"] = properties["metricsPromExporterHost"]
    return {**told, **properties}


def read_broker_config(properties: Mapping[str, str], home: Path) -> BrokerConfig:
    """Return the settings of a broker; its store lies under `home` unless they say otherwise.

    Raises:
        InvalidSettings: unknown names, values that are not allowed, impossible combinations.
    """
    properties = with_apache_metrics(properties)
    problems = list(refused_switches(properties))
    broker = BrokerSettings()
    store: StoreSettings | None = None
    try:
        broker = read_broker_settings(properties)
        if is_bound_by_default(properties):
            broker = replace(broker, bind_address=default_address(broker))
    except InvalidSettings as error:
        problems += error.problems
    problems += wrong_name_servers(broker)
    problems += wrong_access(broker)
    problems += wrong_replication_tls(broker)
    try:
        store = read_settings(properties, home=home)
    except InvalidSettings as error:
        problems += error.problems
    if store is not None:
        role = store.replication.role
        problems += wrong_failover(broker, role)
        if role is BrokerRole.SLAVE and broker.broker_id == 0:
            problems.append("brokerRole is SLAVE and brokerId is 0; a slave's is 1 or above")
        if role is not BrokerRole.SLAVE and broker.broker_id != 0:
            problems.append(
                f"brokerRole is {role.name} and brokerId is {broker.broker_id}; a master's is 0"
            )
    if problems or store is None:
        raise InvalidSettings(problems)
    _tell_of_paths(properties, store.paths.root)
    return BrokerConfig(broker, store, read_tls(properties), read_client_tls(properties))


def _tell_of_paths(properties: Mapping[str, str], root: Path) -> None:
    """Say where something lies that a file seems to put elsewhere, which Apache's never does."""
    for name, place in COPIED_NAMES.items():
        text = properties.get(name, "").strip()
        if text and Path(text).expanduser() != root / place:
            log.warning("%s=%s has no effect, as with Apache: it is %s", name, text, root / place)


def read_tls(properties: Mapping[str, str]) -> ServerTls:
    """Return what the properties say about TLS.

    Raises:
        InvalidValue: values that are not allowed.
    """
    return ServerTls.from_properties(properties)


def read_client_tls(properties: Mapping[str, str]) -> ClientTls | None:
    """Return how a broker speaks TLS to name servers, or None if it does not.

    As with Apache it does if `tls.enable` says so, which is `true` by itself where this broker
    takes nothing but TLS. Also as with Apache it does not ask who a name server is unless it is
    told whom to trust; that is said in the log, for it helps against listeners and not against
    impostors.

    Raises:
        InvalidValue: values that are not allowed.
    """
    enforced = read_tls(properties).mode is TlsMode.ENFORCING
    enabled = properties.get("tls.enable", properties.get("useTLS", str(enforced)))
    if enabled.strip().lower() != "true":
        return None
    tls = ClientTls.from_properties(properties)
    if tls.trust_path is None and "tls.client.authServer" not in properties:
        log.warning(
            "TLS to name servers is encrypted, but nobody checks who they are: set "
            "tls.client.trustCertPath, or tls.client.authServer=true"
        )
        return replace(tls, verifies_server=False, checks_name=False)
    return tls


def read_namesrv_settings(properties: Mapping[str, str]) -> NamesrvSettings:
    """Return the settings of a name server.

    Names of Apache's that mean nothing here are passed over, as in a broker's file.

    Raises:
        InvalidValue: unknown names, values that are not allowed, what there is not here.
    """
    problems = list(refused_in_name_servers(properties))
    problems += unknown_names(properties, namesrv.SETTING_NAMES | FOREIGN | OF_THE_CONTROLLER)
    try:
        settings = namesrv.read_settings(properties)
    except InvalidValue as error:
        problems.append(str(error))
    if problems:
        raise InvalidSettings(problems)
    if is_bound_by_default(properties):
        return msgspec.structs.replace(settings, bind_address=default_address(settings))
    return settings


def namesrv_properties(settings: NamesrvSettings) -> dict[str, str]:
    """Return a name server's settings under RocketMQ's names."""
    return namesrv.write_settings(settings)


def settings_text(properties: Mapping[str, str]) -> str:
    """Return settings as a file has them, one a line, by name."""
    return SETTINGS.encode(properties).decode()


def shown_text(properties: Mapping[str, str]) -> str:
    """Return the same for eyes: without secrets."""
    return settings_text(masked(properties))
