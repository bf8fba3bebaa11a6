"""Name server and broker in one process, with the store in one directory: `gantrymq server`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gantrymq.clock import SystemClock
from gantrymq.node.access import opened_access
from gantrymq.node.broker_node import BrokerNode
from gantrymq.node.namesrv_node import NamesrvNode

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.broker.settings import BrokerSettings
    from gantrymq.namesrv.settings import NamesrvSettings
    from gantrymq.security.accounts import Account
    from gantrymq.store.recovery import RecoveryReport
    from gantrymq.store.settings import StoreSettings
    from gantrymq.transport.tls import ClientTls, ServerTls


class AllInOne:
    """A name server and a broker that is registered with it before anybody can ask."""

    def __init__(
        self,
        namesrv: NamesrvSettings,
        broker: BrokerSettings,
        store: StoreSettings,
        *,
        tls: ServerTls | None = None,
        client_tls: ClientTls | None = None,
    ) -> None:
        self._broker_settings = broker
        self._store_settings = store
        self._tls = tls
        # Its own name server is known by the address of this machine, not by a name.
        self._client_tls = None if client_tls is None else replace(client_tls, checks_name=False)
        self.namesrv = NamesrvNode(namesrv, tls=tls)
        self._broker: BrokerNode | None = None
        self._account: Account | None = None

    @property
    def account(self) -> Account | None:
        """Return who the parts of this process are to each other; None without access control."""
        return self._account

    @property
    def broker(self) -> BrokerNode:
        """Return the broker.

        Raises:
            RuntimeError: it has not been started.
        """
        if self._broker is None:
            raise RuntimeError("the server has not been started")
        return self._broker

    @property
    def started_broker(self) -> BrokerNode | None:
        """Return the broker, or None before there is one."""
        return self._broker

    async def start(self, progress: Callable[[int], None] | None = None) -> RecoveryReport:
        """Start the name server, then the broker, and wait until the one knows the other.

        Raises:
            StoreLocked, StoreDamaged, InvalidValue, OSError: as the two of them.
        """
        access = opened_access(self._broker_settings, self._store_settings, SystemClock())
        if access is not None:
            self._account = access.be_one_process()
            self.namesrv.protect(access)
        await self.namesrv.start()
        settings = replace(
            self._broker_settings,
            name_servers=";".join(
                one for one in (self._broker_settings.name_servers, self.namesrv.own_address) if one
            ),
        )
        self._broker = BrokerNode(
            settings,
            self._store_settings,
            tls=self._tls,
            client_tls=self._client_tls,
            access=access,
        )
        report = await self._broker.start(progress)
        if not self._broker_settings.address:
            # Nobody chose an address: clients are told the one that they came by.
            self.namesrv.name_server.advertise(self._broker.address, None)
        await self._broker.wait_registered()
        return report

    async def stop(self) -> bool:
        """Stop both, the broker first; True if all went well."""
        clean = self._broker is None or await self._broker.stop()
        return await self.namesrv.stop() and clean
