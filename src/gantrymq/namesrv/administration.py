"""Requests of operators: key-value tables, permissions, topics to be forgotten, settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.errors import shown
from gantrymq.model.secrets import masked
from gantrymq.namesrv.kv import ORDER_NAMESPACE
from gantrymq.namesrv.settings import change_settings, write_settings
from gantrymq.wire.bodies.route import KV_TABLE, KvTable
from gantrymq.wire.bodies.settings import SETTINGS
from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.namesrv import (
    AddWritePermResponse,
    DeleteTopicFromNamesrvRequest,
    GetKvConfigResponse,
    KvConfigRequest,
    KvNamespaceRequest,
    PutKvConfigRequest,
    WipeWritePermResponse,
)
from gantrymq.wire.headers.targets import BrokerNameRequest
from gantrymq.wire.response_errors import QueryNotFound, SystemFailure

if TYPE_CHECKING:
    from gantrymq.namesrv.state import Function, State
    from gantrymq.wire.command import Command
    from gantrymq.wire.peer import Peer


class Administration:
    """Handlers of what operators send."""

    def __init__(self, state: State) -> None:
        self._state = state

    def functions(self) -> dict[int, Function]:
        """Return the handlers by request code."""
        return {
            RequestCode.PUT_KV_CONFIG: self.put_kv,
            RequestCode.GET_KV_CONFIG: self.get_kv,
            RequestCode.DELETE_KV_CONFIG: self.delete_kv,
            RequestCode.GET_KVLIST_BY_NAMESPACE: self.kv_table,
            RequestCode.WIPE_WRITE_PERM_OF_BROKER: self.wipe_write,
            RequestCode.ADD_WRITE_PERM_OF_BROKER: self.add_write,
            RequestCode.DELETE_TOPIC_IN_NAMESRV: self.delete_topic,
            RequestCode.UPDATE_NAMESRV_CONFIG: self.update_settings,
            RequestCode.GET_NAMESRV_CONFIG: self.get_settings,
        }

    def put_kv(self, request: Command, _peer: Peer) -> Command:
        """Set a value."""
        header = PutKvConfigRequest.decode(request.fields)
        self._state.kv.put(header.namespace, header.key, header.value)
        self._order_changed(header.namespace, header.key)
        return request.response()

    def get_kv(self, request: Command, _peer: Peer) -> Command:
        """Answer a value."""
        header = KvConfigRequest.decode(request.fields)
        value = self._state.kv.get(header.namespace, header.key)
        if value is None:
            where = f"Namespace: {shown(header.namespace)} Key: {shown(header.key)}"
            raise QueryNotFound(f"No config item, {where}")
        return request.response(fields=GetKvConfigResponse(value=value).encode())

    def delete_kv(self, request: Command, _peer: Peer) -> Command:
        """Remove a value; one that is not there is no error."""
        header = KvConfigRequest.decode(request.fields)
        self._state.kv.delete(header.namespace, header.key)
        self._order_changed(header.namespace, header.key)
        return request.response()

    def kv_table(self, request: Command, _peer: Peer) -> Command:
        """Answer a whole namespace."""
        namespace = KvNamespaceRequest.decode(request.fields).namespace
        table = self._state.kv.table(namespace)
        if table is None:
            raise QueryNotFound(f"No config item, Namespace: {shown(namespace)}")
        return request.response(body=KV_TABLE.encode(KvTable(table=table)))

    def wipe_write(self, request: Command, _peer: Peer) -> Command:
        """Let producers leave a broker group, before it is stopped."""
        name = BrokerNameRequest.decode(request.fields).broker_name
        count = self._state.table.set_writable(name, writable=False)
        return request.response(fields=WipeWritePermResponse(wipe_topic_count=count).encode())

    def add_write(self, request: Command, _peer: Peer) -> Command:
        """Let producers come back."""
        name = BrokerNameRequest.decode(request.fields).broker_name
        count = self._state.table.set_writable(name, writable=True)
        return request.response(fields=AddWritePermResponse(add_topic_count=count).encode())

    def delete_topic(self, request: Command, _peer: Peer) -> Command:
        """Forget a topic, everywhere or in one cluster; one that is not there is no error."""
        header = DeleteTopicFromNamesrvRequest.decode(request.fields)
        self._state.table.delete_topic(header.topic, header.cluster_name or None)
        return request.response()

    def update_settings(self, request: Command, _peer: Peer) -> Command:
        """Change settings, all that are given or none, and keep them."""
        state = self._state
        settings = change_settings(state.settings, SETTINGS.decode(request.body))
        try:
            state.save_settings(SETTINGS.encode(write_settings(settings, live_only=True)))
        except OSError as error:
            raise SystemFailure(f"the settings could not be saved: {error}") from error
        state.settings = settings
        state.answers.use(settings)
        return request.response()

    def get_settings(self, request: Command, _peer: Peer) -> Command:
        """Answer all settings; secrets are not among them."""
        texts = masked(write_settings(self._state.settings))
        return request.response(body=SETTINGS.encode(texts))

    def _order_changed(self, namespace: str, key: str) -> None:
        """Drop the route that shows a changed value."""
        if namespace == ORDER_NAMESPACE:
            self._state.table.forget_answers(key)
