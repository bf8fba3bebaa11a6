"""Requests of clients and tools that only look: routes, clusters, lists of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.errors import shown
from gantrymq.model.topic import UNIT_FLAG, UNIT_SUBSCRIPTION_FLAG
from gantrymq.wire.bodies.route import CLUSTER_INFO, ClusterInfo
from gantrymq.wire.bodies.topic import TOPIC_LIST, TopicList
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.namesrv import GetRouteInfoRequest, GetTopicsByClusterRequest
from gantrymq.wire.response_errors import SystemFailure, TopicNotExist

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gantrymq.namesrv.state import Function, State
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer


class Queries:
    """Handlers that change nothing."""

    def __init__(self, state: State) -> None:
        self._state = state

    def functions(self) -> dict[int, Function]:
        """Return the handlers by request code."""
        return {
            RequestCode.GET_ROUTEINFO_BY_TOPIC: self.route,
            RequestCode.GET_BROKER_CLUSTER_INFO: self.clusters,
            RequestCode.GET_ALL_TOPIC_LIST_FROM_NAMESERVER: self.all_topics,
            RequestCode.GET_TOPICS_BY_CLUSTER: self.topics_of_cluster,
            RequestCode.GET_SYSTEM_TOPIC_LIST_FROM_NS: self.system_topics,
            RequestCode.GET_UNIT_TOPIC_LIST: self._flagged(lambda flags: flags & UNIT_FLAG != 0),
            RequestCode.GET_HAS_UNIT_SUB_TOPIC_LIST: self._flagged(
                lambda flags: flags & UNIT_SUBSCRIPTION_FLAG != 0
            ),
            RequestCode.GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST: self._flagged(
                lambda flags: flags & UNIT_SUBSCRIPTION_FLAG != 0 and flags & UNIT_FLAG == 0
            ),
        }

    def route(self, request: Command, peer: Peer) -> Command:
        """Answer where a topic is, as the asker can reach it."""
        state, fields = self._state, request.fields
        topic = GetRouteInfoRequest.decode(fields).topic
        if state.settings.wait_for_service:
            waited = state.clock.monotonic() - state.started
            if waited < state.settings.wait_for_service_s:
                raise SystemFailure(
                    "name server not ready: brokers may not all have registered yet, ask again in "
                    f"{state.settings.wait_for_service_s - waited:.0f} s"
                )
        in_zone = fields.get("__ZONE_MODE", "").lower() == "true"
        zone = fields.get("__ZONE_NAME", "").strip() if in_zone else None
        body = state.answers.route(topic, peer.listener, zone)
        if body is None:
            raise TopicNotExist(
                f"No topic route info in name server for the topic: {shown(topic)}. "
                "No broker that is registered here has it: create it, or check the address."
            )
        return request.response(body=body)

    def clusters(self, request: Command, peer: Peer) -> Command:
        """Answer every broker group, and the clusters they are in."""
        view = self._state.reach.view_of(peer.listener)
        brokers = {}
        clusters: dict[str, list[str]] = {}
        for name, group in sorted(self._state.table.groups.items()):
            brokers[name] = self._state.reach.broker(group.data(), view)
            for cluster in group.clusters:
                clusters.setdefault(cluster, []).append(name)
        info = ClusterInfo(
            broker_addr_table=brokers,
            cluster_addr_table={name: tuple(clusters[name]) for name in sorted(clusters)},
        )
        return request.response(body=CLUSTER_INFO.encode(info))

    def all_topics(self, request: Command, _peer: Peer) -> Command:
        """Answer the name of every topic."""
        if not self._state.settings.list_all_topics:
            raise SystemFailure("disable: enableAllTopicList is false on this name server")
        return _listed(request, self._state.table.topics)

    def topics_of_cluster(self, request: Command, _peer: Peer) -> Command:
        """Answer the topics that brokers of a cluster have; of one that is not known, none."""
        self._check_lists()
        cluster = GetTopicsByClusterRequest.decode(request.fields).cluster
        groups = self._state.table.groups.values()
        found = (group.topics for group in groups if cluster in group.clusters)
        return _listed(request, set().union(*found))

    def system_topics(self, request: Command, peer: Peer) -> Command:
        """Answer the names of clusters and broker groups, which are topics, and one broker."""
        groups = self._state.table.groups
        names = {name for group in groups.values() for name in (group.name, *group.clusters)}
        address = None
        if groups:
            view = self._state.reach.view_of(peer.listener)
            address = self._state.reach.address(groups[min(groups)].lowest.address, view)
        return _listed(request, names, address)

    def _flagged(self, wanted: Callable[[int], bool]) -> Function:
        """Return the handler that lists topics by their system flags, on any one of the groups."""

        def answer(request: Command, _peer: Peer) -> Command:
            self._check_lists()
            topics = self._state.table.topics.items()
            return _listed(
                request,
                [
                    topic
                    for topic, entry in topics
                    if wanted(next(iter(entry.queues.values())).system_flags)
                ],
            )

        return answer

    def _check_lists(self) -> None:
        """Refuse if lists of topics are switched off."""
        if not self._state.settings.list_topics:
            raise SystemFailure("disable: enableTopicList is false on this name server")


def _listed(request: Command, topics: Iterable[str], address: str | None = None) -> Command:
    """Answer names in their order."""
    listed = TopicList(topic_list=tuple(sorted(topics)), broker_addr=address)
    return request.response(body=TOPIC_LIST.encode(listed))
