"""A name server without sockets: requests in, answers out, told when connections close.

Name servers share nothing and know nothing of each other; brokers register with each of them. A
broker leaves the routes when it says so, when its connection closes, or when it has been silent for
too long.

Whoever owns the process calls `handle` for every request, `peer_closed` for every connection that
closes, and `tick` about once a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.errors import ContentError, InvalidValue
from gantrymq.namesrv.administration import Administration
from gantrymq.namesrv.answers import RouteAnswers
from gantrymq.namesrv.kv import KvTables
from gantrymq.namesrv.queries import Queries
from gantrymq.namesrv.reach import Advertised, Reach
from gantrymq.namesrv.registration import BrokerRequests
from gantrymq.namesrv.routes import RouteTable
from gantrymq.namesrv.settings import NamesrvSettings
from gantrymq.namesrv.state import Function, State
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.ha import NotifyMinBrokerIdChangeRequest
from gantrymq.wire.response_errors import ResponseError

if TYPE_CHECKING:
    from collections.abc import Callable

    from gantrymq.clock import Clock
    from gantrymq.namesrv.members import LowestChanged
    from gantrymq.wire.peer import Peer

_CLIENT_CODES: Final = frozenset(
    {
        RequestCode.SEND_MESSAGE,
        RequestCode.SEND_MESSAGE_V2,
        RequestCode.SEND_BATCH_MESSAGE,
        RequestCode.PULL_MESSAGE,
        RequestCode.HEART_BEAT,
        RequestCode.GET_CONSUMER_LIST_BY_GROUP,
        RequestCode.GET_BROKER_RUNTIME_INFO,
        RequestCode.UPDATE_AND_CREATE_TOPIC,
    }
)
"""What clients and tools ask brokers first."""
_CONTROLLER_CODES: Final = frozenset(range(1001, 1019)) - {
    RequestCode.GET_BROKER_EPOCH_CACHE,
    RequestCode.NOTIFY_BROKER_ROLE_CHANGED,
}


def _ignore(_content: bytes) -> None:
    """Save nothing: for a name server that keeps nothing over a restart."""


class NameServer:
    """One name server. One event loop owns it."""

    def __init__(
        self,
        clock: Clock,
        settings: NamesrvSettings | None = None,
        *,
        save_kv: Callable[[bytes], None] = _ignore,
        save_settings: Callable[[bytes], None] = _ignore,
        send_oneway: Callable[[str, Command], None] | None = None,
        table: RouteTable | None = None,
    ) -> None:
        """Build a name server with an empty table; `check` may be set to refuse requests.

        `save_kv` and `save_settings` write the two files, whole, and raise OSError if they cannot.
        `send_oneway` sends a request to a broker's address, for `notifyMinBrokerIdChanged`.
        """
        settings = settings or NamesrvSettings()
        table = table or RouteTable()
        kv, reach = KvTables(save_kv), Reach()
        answers = RouteAnswers(table, kv, reach, settings)
        started = clock.monotonic()
        self._state = State(
            table, kv, reach, answers, settings, clock, started, save_settings=save_settings
        )
        self._send_oneway = send_oneway
        self.check: Callable[[int, Command, Peer], object] | None = None
        """Sees every request before anything else does; raises what is answered."""
        self._scanned = started
        parts = (Queries(self._state), BrokerRequests(self._state), Administration(self._state))
        self._functions: dict[int, Function] = {
            code: function for part in parts for code, function in part.functions().items()
        }

    @property
    def settings(self) -> NamesrvSettings:
        """Return the settings as they are now."""
        return self._state.settings

    @property
    def table(self) -> RouteTable:
        """Return the routing table; a broker of the same process may register with it directly."""
        return self._state.table

    @property
    def codes(self) -> frozenset[int]:
        """Return the request codes that are handled."""
        return frozenset(self._functions)

    def load_kv(self, content: bytes) -> None:
        """Take what `kvConfig.json` held when the process started.

        Raises:
            ContentError: it is not such a file.
        """
        self._state.kv.load(content)
        self._state.table.forget_answers()

    def advertise(self, address: str, how: Advertised | None) -> None:
        """Say how a broker of this process is reached; None: by whatever reaches the name server.

        Not called for a broker whose address was chosen in its file: that one is told as it is.
        """
        if how is None:
            self._state.reach.follow_listener(address)
        else:
            self._state.reach.advertise(address, how)
        self._state.table.forget_answers()

    def withdraw(self, address: str) -> None:
        """Tell a broker's address as it registered it again."""
        self._state.reach.withdraw(address)
        self._state.table.forget_answers()

    def handle(self, request: Command, peer: Peer) -> Command | None:
        """Answer a request; None for a oneway one. Raises nothing for whatever a peer sends."""
        function = self._functions.get(request.code)
        try:
            if self.check is not None:
                self.check(request.code, request, peer)
            answer = _refused(request) if function is None else function(request, peer)
        except ResponseError as error:
            answer = request.response(error.code, remark=error.remark)
        except (ContentError, InvalidValue) as error:
            answer = request.response(ResponseCode.SYSTEM_ERROR, remark=str(error))
        if self._state.table.lowest_changes:
            self._tell_lowest()
        return None if request.is_oneway else answer

    def peer_closed(self, peer: Peer) -> None:
        """Take the brokers of a closed connection out of the routes."""
        self._state.brokers.pop(peer.number, None)
        self._state.table.peer_closed(peer.number)
        self._tell_lowest()

    def tick(self, now: float) -> None:
        """Take silent brokers out of the routes; `now` is the clock's monotonic time.

        The connection of such a broker is closed, unless another broker lives on it: then it comes
        back with a new one, and does not go on asking into a connection that nobody hears.
        """
        if now - self._scanned < self._state.settings.scan_interval_ms / 1000:
            return
        self._scanned = now
        for member in self._state.table.expire(now):
            if not self._state.table.has_peer(member.peer):
                peer = self._state.brokers.pop(member.peer, None)
                if peer is not None:
                    peer.close(f"broker {member.address} was silent for {member.timeout_s:.0f} s")
        self._tell_lowest()

    def _tell_lowest(self) -> None:
        """Tell brokers about a change of the lowest id among them, or forget it."""
        changes = self._state.table.lowest_changes
        while changes:
            change = changes.popleft()
            if self._send_oneway is not None and self._state.settings.tell_lowest_changed:
                for address in change.tell:
                    self._send_oneway(address, _lowest_notice(change))


def _lowest_notice(change: LowestChanged) -> Command:
    """Return what brokers are told."""
    header = NotifyMinBrokerIdChangeRequest(
        min_broker_id=change.broker_id,
        broker_name=change.name,
        min_broker_addr=change.address,
        offline_broker_addr=change.offline_address,
        ha_broker_addr=change.ha_address,
    )
    code = RequestCode.NOTIFY_MIN_BROKER_ID_CHANGE
    return Command.request(code, 0, header.encode(), oneway=True)


def _refused(request: Command) -> Command:
    """Answer a request that nobody here handles."""
    if request.code in _CONTROLLER_CODES:
        remark = (
            f"request code {request.code} is for a controller, and this name server has none: "
            "masters are elected through etcd; leave enableControllerMode off"
        )
    elif request.code in _CLIENT_CODES:
        remark = (
            f"request type {request.code} not supported by a name server: ask a broker; is an "
            "address of a name server given where a broker's belongs?"
        )
    else:
        remark = f"request type {request.code} not supported by a name server"
    return request.response(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, remark=remark)
