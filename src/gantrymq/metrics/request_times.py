"""How long requests take that do not come by the lanes: heartbeats, commits of offsets, queries.

Sends and pulls that are written as they usually are never pass the router; the store times the
former, and a pull that waits for a message says nothing by its time. Owned by the event loop's
task.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import ContentError
from gantrymq.metrics.catalogue import OTHER
from gantrymq.model.names import is_system_group, is_system_topic
from gantrymq.store.statistics import BUCKET_ENDS_MS
from gantrymq.wire import fastjson
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from gantrymq.clock import Clock
    from gantrymq.metrics.sheet import Page
    from gantrymq.store.statistics import PutTimes
    from gantrymq.wire.peer import Answer, Pending

BOUNDS_MS: Final = (1, 3, 5, 7, 10, 100, 1000, 2000, 3000)
"""Apache's."""
MAKING_BOUNDS_MS: Final = (10, 100, 1000, 3000, 5000)
"""Apache's, of making topics and groups."""
KINDS_MAX: Final = 256
"""Pairs of request and response that are told apart."""
_WAITING: Final = frozenset(
    {
        RequestCode.PULL_MESSAGE,
        RequestCode.LITE_PULL_MESSAGE,
        RequestCode.POP_MESSAGE,
        RequestCode.NOTIFICATION,
    }
)
_TOPICS: Final = "rocketmq_topic_create_execution_time"
_GROUPS: Final = "rocketmq_consumer_group_create_execution_time"
_MAKING: Final = {
    int(RequestCode.UPDATE_AND_CREATE_TOPIC): _TOPICS,
    int(RequestCode.UPDATE_AND_CREATE_TOPIC_LIST): _TOPICS,
    int(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP): _GROUPS,
    int(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST): _GROUPS,
}
_NAMES: Final = {int(code): code.name.lower() for code in RequestCode}
_RESPONSES: Final = {int(code): code.name.lower() for code in ResponseCode}


class _Asked(NamedTuple):
    request: str
    response: str
    is_held: bool
    result: str


class _Making(NamedTuple):
    metric: str
    status: str
    is_system: bool


class RequestTimes:
    """Stands between the router and its handlers; see `Router.watch`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._counts: dict[_Asked, list[int]] = {}
        self._totals: dict[_Asked, int] = {}
        self._makings: dict[_Making, tuple[list[int], list[int]]] = {}
        """Counts by bound, and the sum of the times."""

    def __call__(self, request: Command, answer: Callable[[], Pending]) -> Pending:
        """Return the answer to a request, and note how long it took."""
        began = self._clock.monotonic()
        pending = answer()
        if asyncio.isfuture(pending):
            pending.add_done_callback(
                lambda done: None if done.cancelled() else self._note(request, done.result(), began)
            )
        elif asyncio.iscoroutine(pending):
            return self._later(request, pending, began)
        else:
            self._note(request, pending, began)
        return pending

    async def _later(
        self, request: Command, coroutine: Coroutine[Any, Any, Answer], began: float
    ) -> Answer:
        answer = await coroutine
        self._note(request, answer, began, waited=True)
        return answer

    def _note(
        self, request: Command, answer: object, began: float, *, waited: bool = False
    ) -> None:
        took_ms = int((self._clock.monotonic() - began) * 1000)
        code = answer.code if isinstance(answer, Command) else ResponseCode.SUCCESS
        if request.code in _MAKING:
            self._note_making(request, took_ms, is_done=code == ResponseCode.SUCCESS)
        asked = _Asked(
            _NAMES.get(request.code, OTHER),
            _RESPONSES.get(code, OTHER),
            waited or request.code in _WAITING,
            "oneway" if request.is_oneway else "success",
        )
        counts = self._counts.get(asked)
        if counts is None:
            if len(self._counts) >= KINDS_MAX:
                return
            counts = self._counts[asked] = [0] * (len(BOUNDS_MS) + 1)
            self._totals[asked] = 0
        counts[bisect_left(BOUNDS_MS, took_ms)] += 1
        self._totals[asked] += took_ms

    def _note_making(self, request: Command, took_ms: int, *, is_done: bool) -> None:
        status = "success" if is_done else "failure"
        kind = _Making(_MAKING[request.code], status, _is_of_system(request))
        counts, total = self._makings.setdefault(
            kind, ([0] * (len(MAKING_BOUNDS_MS) + 1), [0])
        )  # two metrics, two states, two kinds of names: never more than eight
        counts[bisect_left(MAKING_BOUNDS_MS, took_ms)] += 1
        total[0] += took_ms

    def fill(self, page: Page, sends: PutTimes) -> None:
        """Write the times of requests, and of sends as the store has them."""
        for kind, (counts, total) in self._makings.items():
            page.spread(
                kind.metric, MAKING_BOUNDS_MS, list(accumulate(counts)), total[0], kind.status,
                str(kind.is_system).lower(),
            )  # fmt: skip
        for asked, counts in self._counts.items():
            labels = asked.request, asked.response, str(asked.is_held).lower(), asked.result
            below = list(accumulate(counts))
            page.spread(
                "rocketmq_rpc_latency", BOUNDS_MS, below, self._totals[asked], "remoting", *labels
            )
        labels = "send_message", "success", "false", "success"
        page.spread(
            "rocketmq_rpc_latency", BOUNDS_MS, _of_sends(sends), sends.total_ms, "remoting", *labels
        )


def _of_sends(sends: PutTimes) -> list[int]:
    """Return how many sends took no longer than each bound; then how many there are."""
    below = list(accumulate(sends.since_start()))
    return [*(below[BUCKET_ENDS_MS.index(bound)] for bound in BOUNDS_MS), below[-1]]


def _is_of_system(request: Command) -> bool:
    """Tell whether a topic or a group of the system is made; a list of them never counts as one."""
    if _MAKING[request.code] == _TOPICS:
        return is_system_topic(request.fields.get("topic", ""))
    try:
        told = fastjson.parse(request.body)
    except ContentError:
        return False
    return isinstance(told, dict) and is_system_group(str(told.get("groupName", "")))
