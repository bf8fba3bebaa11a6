"""A connection to brokers for code that blocks: Spark's planners, tasks and writers.

One for each set of options in a process: a worker's tasks share connections and routes. Everything
runs on an event loop of its own thread, so that many requests can be under way while a task
decodes what has come.
"""

from __future__ import annotations

import asyncio
import os
import ssl
from typing import TYPE_CHECKING, Any, Final, TypeVar

from gantrymq.blocking.loop_thread import LoopThread
from gantrymq.client.consuming.calls import ConsumerCalls
from gantrymq.client.core import ClientCore
from gantrymq.client.errors import NoRoute, PeerGone, PeerLate
from gantrymq.client.settings import ClientSettings, credentials_of, parse_name_servers
from gantrymq.errors import GantryError, InvalidValue
from gantrymq.spark.pull_line import PullLines

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from gantrymq.client.route import Route
    from gantrymq.spark.options import ConnectionOptions

Result = TypeVar("Result")

DEFAULT_GROUP: Final = "gantrymq-spark"
"""Whose pulls they are where no group is named; nothing is committed for it."""
LINKS_MAX: Final = 16
_PAUSE_S: Final = 0.1
_PAUSE_S_MAX: Final = 5.0
_links: Final[dict[tuple[int, ConnectionOptions], Link]] = {}


class Link:
    """Brokers, asked from any thread that may wait."""

    def __init__(self, options: ConnectionOptions) -> None:
        self.options = options
        self.thread = LoopThread("spark link")
        context = _ssl_context(options)
        self.lines = PullLines(context, options.timeout_s)
        """For rows of pulls, which need no event loop."""
        self.core = ClientCore(
            ClientSettings(
                name_servers=parse_name_servers(options.name_server),
                namespace=options.namespace,
                ssl=context,
                credentials=credentials_of(
                    options.access_key, options.secret_key, options.security_token
                ),
                request_timeout_s=options.timeout_s,
                connect_timeout_s=options.timeout_s,
            )
        )
        self.group = self.core.namespace.wrap(options.group or DEFAULT_GROUP)
        self.calls = ConsumerCalls(self.core, self.group)
        self.thread.start()
        self.thread.call(self.core.start())

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on the loop and return its result."""
        return self.thread.call(work)

    def close(self) -> None:
        """Close the connections and end the thread."""
        self.lines.close()
        if self.thread.is_running:
            self.thread.call(self.core.close())
            self.thread.stop()

    def full_name(self, name: str) -> str:
        """Return a topic or group as servers know it."""
        return self.core.namespace.wrap(name)

    async def patiently(
        self, topic: str | None, attempt: Callable[[], Awaitable[Result]]
    ) -> Result:
        """Return what an attempt gives, made again while its error may pass, with pauses.

        Raises:
            GantryError: that of the last attempt.
        """
        pause_s = _PAUSE_S
        for tries_left in reversed(range(self.options.retries + 1)):
            try:
                return await attempt()
            except GantryError as error:
                may_pass = error.retriable or isinstance(error, PeerGone | PeerLate)
                if not tries_left or not may_pass:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_S_MAX)
            if topic is not None:
                await self._refresh(topic)
        raise AssertionError

    async def _refresh(self, topic: str) -> None:
        try:
            await self.core.routes.get(topic, refresh=True)
        except NoRoute:
            return  # the next attempt says what is wrong

    async def route(self, topic: str, *, refresh: bool = False) -> Route:
        """Return the route of a topic, by its full name.

        Raises:
            NoRoute: nobody knows it, or nobody answers.
        """
        return await self.patiently(None, lambda: self.core.routes.get(topic, refresh=refresh))


def link_to(options: ConnectionOptions) -> Link:
    """Return the link of this process to some brokers."""
    key = os.getpid(), options
    found = _links.get(key)
    if found is None:
        for stale in [one for one in _links if one[0] != os.getpid()]:
            del _links[stale]  # of the process that this one was forked from
        while len(_links) >= LINKS_MAX:
            _links.pop(next(iter(_links))).close()
        found = _links[key] = Link(options)
    return found


def _ssl_context(options: ConnectionOptions) -> ssl.SSLContext | None:
    if not options.tls:
        return None
    try:
        context = ssl.create_default_context(cafile=options.tls_ca_file)
        if options.tls_cert_file:
            context.load_cert_chain(options.tls_cert_file, options.tls_key_file)
    except (OSError, ssl.SSLError) as error:
        raise InvalidValue(
            f"TLS files cannot be used ({error}): they must be there on every executor"
        ) from error
    if options.tls_insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
