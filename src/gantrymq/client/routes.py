"""The routes of a client: asked for when a topic is first used, then every `route_s`.

A route that is known stays in use while no name server answers, and also when the name server has
forgotten the topic: brokers know better than it does whether they take a message. A producer may
take the template's route for a topic that nobody knows; the first send makes the topic.

Owned by the event loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from gantrymq.client.errors import NoRoute, NoRouteCause
from gantrymq.client.name_servers import NoNameServer
from gantrymq.client.route import Route
from gantrymq.errors import ContentError, GantryError, InvalidValue
from gantrymq.limits import QUEUES_MAX
from gantrymq.model.names import TEMPLATE_TOPIC
from gantrymq.transport.addresses import split_address
from gantrymq.wire.bodies.route import TOPIC_ROUTE
from gantrymq.wire.codes import RequestCode, ResponseCode
from gantrymq.wire.command import Command
from gantrymq.wire.headers.namesrv import GetRouteInfoRequest
from gantrymq.wire.peer import PeerGone
from gantrymq.wire.response_errors import error_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gantrymq.client.name_servers import NameServers
    from gantrymq.model.route import TopicRoute

logger = logging.getLogger(__name__)

ROUTES_MAX: Final = 10_000
"""Topics that are remembered; past it the one asked for first is forgotten."""
REFRESHES_MAX: Final = 8
"""Questions to a name server at the same time."""


class Routes:
    """Topic, by its full name -> route."""

    def __init__(self, name_servers: NameServers) -> None:
        self._name_servers = name_servers
        self._known: dict[str, Route] = {}
        self._asking: dict[tuple[str, bool], asyncio.Task[Route]] = {}
        self._watchers: dict[str, list[Callable[[Route], object]]] = {}
        self.on_change: Callable[[], object] | None = None
        """Told when any route has changed: there may be new brokers."""
        self.version = 0
        """Counted up with every change of any route."""

    def known(self, topic: str) -> Route | None:
        """Return the route as it is known now, without asking."""
        return self._known.get(topic)

    def addresses(self, *, slaves: bool) -> dict[str, str]:
        """Return the address of every broker of every route, with the broker's name."""
        return {
            address: broker.name
            for route in self._known.values()
            for broker in route.brokers.values()
            for broker_id, address in broker.addresses.items()
            if slaves or broker_id == 0
        }

    async def get(self, topic: str, *, refresh: bool = False, template: bool = False) -> Route:
        """Return the route of a topic, by its full name.

        With `refresh` a name server is asked even if the route is known; `template` lets a topic
        that nobody knows have the queues that its first send will make.

        Raises:
            NoRoute: no name server answers, or none knows the topic.
        """
        found = self._known.get(topic)
        if found is not None and not refresh and (template or not found.is_template):
            return found
        asking = self._start_asking(topic, template=template)
        try:
            # One caller that gives up must not take the answer from the others.
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            caller = asyncio.current_task()
            if asking.cancelled() and caller is not None and not caller.cancelling():
                raise PeerGone(f"the route of {topic} is not asked for any more") from None
            raise

    def _start_asking(self, topic: str, *, template: bool) -> asyncio.Task[Route]:
        """Ask about a topic, unless somebody does already."""
        key = topic, template
        task = self._asking.get(key)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._ask(topic, template=template))
            self._asking[key] = task
            task.add_done_callback(lambda done: self._asked(key, done))
        return task

    def _asked(self, key: tuple[str, bool], task: asyncio.Task[Route]) -> None:
        del self._asking[key]
        if not task.cancelled():
            task.exception()  # who waited has it; nobody may have

    def refresh_soon(self, topic: str) -> None:
        """Ask about a topic in the background, unless somebody does already."""
        self._start_asking(topic, template=False)

    def watch(self, topic: str, callback: Callable[[Route], object]) -> None:
        """Call `callback(route)` whenever the route of a topic has changed; see also `get`."""
        self._watchers.setdefault(topic, []).append(callback)

    def unwatch(self, topic: str, callback: Callable[[Route], object]) -> None:
        """Call it no more."""
        watching = self._watchers.get(topic, [])
        if callback in watching:
            watching.remove(callback)
        if not watching:
            self._watchers.pop(topic, None)

    async def refresh_all(self) -> None:
        """Ask about every topic that is known or watched; what fails is logged."""
        topics = iter(sorted({*self._known, *self._watchers}))
        await asyncio.gather(*(self._refresh_some(topics) for _ in range(REFRESHES_MAX)))

    async def _refresh_some(self, topics: Iterator[str]) -> None:
        for topic in topics:
            try:
                await self.get(topic, refresh=True)
            except NoRoute as error:
                known = self._known.get(topic)
                if known is None or not known.is_template:
                    logger.warning("%s", error)
            except GantryError as error:
                logger.warning("the route of %s cannot be refreshed: %s", topic, error)

    def stop(self) -> None:
        """Give up what is being asked."""
        for task in tuple(self._asking.values()):
            task.cancel()

    async def _ask(self, topic: str, *, template: bool) -> Route:
        data = await self._ask_name_server(topic, topic)
        if data is not None:
            return self._note(Route(topic, data))
        known = self._known.get(topic)
        if known is not None and (template or not known.is_template):
            return known  # the name server has forgotten it, or it is not there yet
        if template:
            data = await self._ask_name_server(topic, TEMPLATE_TOPIC)
            if data is not None:
                return self._note(Route(topic, data, is_template=True))
        raise NoRoute(topic, NoRouteCause.UNKNOWN_TOPIC, self._unknown(template=template))

    def _unknown(self, *, template: bool) -> str:
        listed = self._name_servers.listed
        told = f"none of the name servers {listed} knows it"
        if "," not in listed:
            told = f"the name server {listed} does not know it"
        if template:
            return (
                f"{told}, nor a broker that makes topics by itself: create the topic, set"
                " autoCreateTopicEnable=true on a broker, or look whether a broker is registered"
            )
        return f"{told}: create the topic, or send a message to it first"

    async def _ask_name_server(self, topic: str, asked: str) -> TopicRoute | None:
        """Return what a name server says about `asked`; None if it does not know it."""
        fields = GetRouteInfoRequest(topic=asked, accept_standard_json_only=True).encode()
        request = Command.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, 0, fields)
        found: list[TopicRoute] = []

        def takes(reply: Command) -> bool:
            if reply.code != ResponseCode.SUCCESS:
                return False
            try:
                found.append(_read(reply.body))
            except ContentError as error:
                logger.warning("a name server answered something else than a route: %s", error)
                return False
            return True

        try:
            reply = await self._name_servers.ask(request, takes=takes)
        except NoNameServer as error:
            raise NoRoute(topic, NoRouteCause.NO_NAME_SERVER, str(error)) from None
        if found:
            return found[0]
        if reply.code == ResponseCode.TOPIC_NOT_EXIST:
            return None
        if reply.code == ResponseCode.SUCCESS:
            problem = "the answer is no route"
        else:
            problem = str(error_for(reply.code, reply.remark))
        raise NoRoute(topic, NoRouteCause.REFUSED, f"{self._name_servers.listed}: {problem}")

    def _note(self, route: Route) -> Route:
        """Keep a route, and tell those who watch if it is another than before."""
        known = self._known.get(route.topic)
        if known is not None and route.same_as(known):
            return known
        if known is None and len(self._known) >= ROUTES_MAX:
            del self._known[next(iter(self._known))]
        self._known[route.topic] = route
        self.version += 1
        for callback in tuple(self._watchers.get(route.topic, ())):
            try:
                callback(route)
            except Exception:  # the route is good, whatever a watcher makes of it
                logger.exception("a watcher of topic %s failed", route.topic)
        if self.on_change is not None:
            self.on_change()
        return route


def _read(body: bytes) -> TopicRoute:
    """Return the route that a name server answered with.

    Raises:
        ContentError: it is none, or has more queues than there can be.
    """
    data = TOPIC_ROUTE.decode(body)
    for told in data.queues:
        if max(told.read_queues, told.write_queues) > QUEUES_MAX:
            raise ContentError("body.queueDatas", f"{told} has more than {QUEUES_MAX} queues")
    for broker in data.brokers:
        for address in broker.addresses.values():
            try:
                split_address(address)
            except InvalidValue as error:
                raise ContentError("body.brokerDatas", str(error)) from None
    return data
