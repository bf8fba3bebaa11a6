"""A broker's settings about failover: what cannot be, and how it proves to etcd who it is.

Whoever may write to etcd decides who is master. A user's password therefore goes over TLS, or stays
on this machine; it lies in a file of its own, so that no settings file has it.
"""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.cluster.etcd_connection import EtcdLogin, split_endpoint
from gantrymq.errors import InvalidValue
from gantrymq.store.settings import BrokerRole
from gantrymq.transport.tls import ClientTls
from gantrymq.wire.hosts import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gantrymq.broker.settings import BrokerSettings

log = logging.getLogger(__name__)

PASSWORD_BYTES_MAX: Final = 1024
_OTHERS: Final = 0o077


def wrong_failover(broker: BrokerSettings, role: BrokerRole) -> Iterator[str]:
    """Yield a sentence for everything about failover that cannot be."""
    if not broker.etcd:
        for name, text in _about_etcd(broker).items():
            if text:
                yield f"{name} is set and failoverEtcd is not: say where etcd is"
        if broker.member:
            yield "failoverId is set and failoverEtcd is not: say where etcd is"
        return
    if not broker.member:
        yield "failoverEtcd is set and failoverId is not: give every broker of the group its own"
    if role is BrokerRole.SLAVE:
        yield (
            "brokerRole is SLAVE with failoverEtcd: say what it is when it is elected, SYNC_MASTER "
            "or ASYNC_MASTER; who follows is decided by election"
        )
    try:
        endpoints = [split_endpoint(one) for one in broker.etcd.split(",")]
    except InvalidValue as error:
        yield f"failoverEtcd: {error}"
    else:
        yield from _wrong_login(broker, endpoints)


def _about_etcd(broker: BrokerSettings) -> dict[str, str]:
    return {
        "failoverEtcdUser": broker.etcd_user,
        "failoverEtcdPasswordFile": broker.etcd_password_file,
        "failoverEtcdTrustCertPath": broker.etcd_trust_path,
        "failoverEtcdCertPath": broker.etcd_cert_path,
        "failoverEtcdKeyPath": broker.etcd_key_path,
    }


def _wrong_login(broker: BrokerSettings, endpoints: list[tuple[str, str, int]]) -> Iterator[str]:
    if bool(broker.etcd_user) != bool(broker.etcd_password_file):
        yield "failoverEtcdUser and failoverEtcdPasswordFile go together: set both, or neither"
    if bool(broker.etcd_cert_path) != bool(broker.etcd_key_path):
        yield "failoverEtcdCertPath and failoverEtcdKeyPath go together: set both, or neither"
    plain = [host for scheme, host, _ in endpoints if scheme == "http"]
    if plain and (broker.etcd_trust_path or broker.etcd_cert_path):
        yield (
            f"failoverEtcd names {plain[0]} without TLS, and certificates are set for it: write "
            "https:// before every endpoint, or leave the certificates out"
        )
    far = [host for host in plain if not is_loopback(host)]
    if broker.etcd_user and far and not broker.insecure:
        yield (
            f"failoverEtcd names {far[0]} without TLS, and the password of failoverEtcdUser would "
            "travel in the clear: write https:// before every endpoint, or set insecure=true"
        )


def etcd_login(broker: BrokerSettings) -> EtcdLogin:
    """Return who a broker is to etcd.

    Raises:
        InvalidValue: a file cannot be used.
    """
    for scheme, host, port in map(split_endpoint, broker.etcd.split(",")):
        if scheme == "http" and broker.acl and not is_loopback(host):
            log.warning(
                "etcd at %s:%d is spoken to without TLS: whoever is in between may decide who is "
                "master; write https:// before it, and set failoverEtcdUser",
                host,
                port,
            )
    if broker.etcd_user:
        _password(broker.etcd_password_file)
    if broker.etcd_trust_path or broker.etcd_cert_path:
        ClientTls(  # its errors name the file
            cert_path=broker.etcd_cert_path or None,
            key_path=broker.etcd_key_path or None,
            trust_path=broker.etcd_trust_path or None,
        ).context()
    return EtcdLogin(
        user=broker.etcd_user,
        password=lambda: _password(broker.etcd_password_file),
        trust_path=broker.etcd_trust_path,
        cert_path=broker.etcd_cert_path,
        key_path=broker.etcd_key_path,
    )


def _password(path: str) -> str:
    try:
        with Path(path).expanduser().open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            line = file.read(PASSWORD_BYTES_MAX).splitlines()[:1]
    except OSError as error:
        raise InvalidValue(
            f"failoverEtcdPasswordFile {path} cannot be read: {error.strerror}"
        ) from None
    if mode & _OTHERS:
        raise InvalidValue(
            f"failoverEtcdPasswordFile {path} has mode {mode:04o}, so that others may read it; "
            "chmod 600"
        )
    try:
        password = line[0].decode() if line else ""
    except UnicodeDecodeError:
        password = ""
    if not password:
        raise InvalidValue(
            f"failoverEtcdPasswordFile {path} has no password: it is the first line, in UTF-8"
        )
    return password
