"""Fields that any request may carry, and the header that carries none."""

from msgspec import field

from gantrymq.wire.fields import Header, Int32


class NoFields(Header, frozen=True, kw_only=True):
    """A request or response that has no ext fields."""


class SignatureFields(Header, frozen=True, kw_only=True):
    """What a client with credentials adds to every request."""

    access_key: str | None = field(name="AccessKey", default=None)
    signature: str | None = field(name="Signature", default=None)
    security_token: str | None = field(name="SecurityToken", default=None)
    channel: str | None = field(name="OnsChannel", default=None)
    """`ALIYUN` or empty; the C++ and Node clients send it."""


class RpcFields(Header, frozen=True, kw_only=True):
    """What 5.x clients and brokers may add to every request."""

    broker_name: str | None = field(name="bname", default=None)
    namespace: str | None = field(name="ns", default=None)
    namespaced: bool | None = field(name="nsd", default=None)
    oneway: bool | None = field(name="oway", default=None)
    logical: bool | None = field(name="lo", default=None)
    """The queue id is that of a static topic's logical queue."""
    request_type: Int32 | None = field(name="ReqT", default=None)
    owner: str | None = field(name="Owner", default=None)
    zone_name: str | None = field(name="__ZONE_NAME", default=None)
    zone_mode: str | None = field(name="__ZONE_MODE", default=None)


COMMON_FIELDS = frozenset({*SignatureFields.wire_names(), *RpcFields.wire_names()})
"""Wire names that any request may carry beside those of its own schema."""
