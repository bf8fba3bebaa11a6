"""Waiting for a name server to know a topic: servers that have just started take a while."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.headers.namesrv import GetRouteInfoRequest
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUTE_S_MAX: Final = 60
TEMPLATE: Final = "TBW102"
"""The topic that every broker has which makes others by itself."""


def wait_for_route(name_server: str, topic: str = TEMPLATE, brokers: Sequence[str] = ()) -> None:
    """Return when a name server (`host:port`) is there and knows a topic, on all these brokers."""
    host, _, port = name_server.rpartition(":")
    deadline = time.monotonic() + ROUTE_S_MAX
    header = GetRouteInfoRequest(topic=topic)
    while time.monotonic() < deadline:
        try:
            with RemotingClient(host, int(port)) as client:
                answer = client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
        except OSError:
            answer = None
        if (
            answer is not None
            and answer.code == ResponseCode.SUCCESS
            and all(f'"brokerName":"{name}"'.encode() in answer.body for name in brokers)
        ):
            return
        time.sleep(0.02)
    raise TimeoutError(f"{name_server} does not know {topic} after {ROUTE_S_MAX} s")
