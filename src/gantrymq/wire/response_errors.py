"""One exception class for each response code other than SUCCESS.

A class says what the code means, and two things about what to do next:

- `retriable`: a producer may send the same message to another broker, as Apache's producers do.
- `fatal`: asking again, here or elsewhere, gives the same answer; the request itself must change.

Most codes are neither: something else has to happen first, and the docstring says what. Codes 10,
11 and 12 mean that the message *is* stored, and 19, 20 and 21 are ordinary endings of a pull;
whoever treats them as results looks at `ResponseCode` and never makes the exception.
"""

from __future__ import annotations

from typing import ClassVar

from gantrymq.errors import GantryError
from gantrymq.wire.codes import ResponseCode


class ResponseError(GantryError):
    """A peer answered with another code than SUCCESS; `remark` is what it said about it."""

    code: int
    retriable: ClassVar[bool] = False
    fatal: ClassVar[bool] = False

    def __init__(self, remark: str = "") -> None:
        super().__init__(remark)
        self.remark = remark

    def __init_subclass__(
        cls, *, code: ResponseCode | None = None, retriable: bool = False, fatal: bool = False
    ) -> None:
        """Take the class arguments, and enter the class into the table of its code."""
        super().__init_subclass__()
        cls.retriable = retriable
        cls.fatal = fatal
        if code is not None:
            if code in _CLASSES:
                raise TypeError(f"{code!r} has the class {_CLASSES[code].__name__} already")
            cls.code = code
            _CLASSES[code] = cls

    def __str__(self) -> str:
        """Return the code with its name, if it has one, and the remark."""
        try:
            name = f"{ResponseCode(self.code).name} ({int(self.code)})"
        except ValueError:
            name = f"response code {self.code}"
        return f"{name}: {self.remark}" if self.remark else name


_CLASSES: dict[ResponseCode, type[ResponseError]] = {}


class UnknownResponse(ResponseError):
    """A response code that this release does not know; `code` is the number."""

    def __init__(self, code: int, remark: str = "") -> None:
        super().__init__(remark)
        self.code = code

    def __reduce__(self) -> tuple[type[UnknownResponse], tuple[int, str]]:
        """Let the error cross a process border with its number."""
        return type(self), (self.code, self.remark)


def error_for(code: int, remark: str | None = None) -> ResponseError:
    """Return the exception for a response code; `UnknownResponse` for one that is not known.

    Raises ValueError for SUCCESS, which is no error.
    """
    if code == ResponseCode.SUCCESS:
        raise ValueError("SUCCESS is not an error")
    try:
        known = _CLASSES[ResponseCode(code)]
    except ValueError:
        return UnknownResponse(code, remark or "")
    return known(remark or "")


class SystemFailure(ResponseError, code=ResponseCode.SYSTEM_ERROR, retriable=True):
    """The peer failed in a way it did not foresee, or did not find what was asked for."""


class SystemBusy(ResponseError, code=ResponseCode.SYSTEM_BUSY, retriable=True):
    """The peer is overloaded and did nothing."""


class RequestCodeNotSupported(
    ResponseError, code=ResponseCode.REQUEST_CODE_NOT_SUPPORTED, fatal=True
):
    """The peer does not know this request code."""


class TransactionFailed(ResponseError, code=ResponseCode.TRANSACTION_FAILED):
    """Defined by the protocol, not sent by any release."""


class FlushDiskTimeout(ResponseError, code=ResponseCode.FLUSH_DISK_TIMEOUT):
    """Stored, but not flushed to disk in time; producers get it as a status."""


class SlaveNotAvailable(ResponseError, code=ResponseCode.SLAVE_NOT_AVAILABLE):
    """Stored, but no slave is there; or a slave was asked what only a master does."""


class FlushSlaveTimeout(ResponseError, code=ResponseCode.FLUSH_SLAVE_TIMEOUT):
    """Stored, but not replicated in time; producers get it as a status."""


class MessageIllegal(ResponseError, code=ResponseCode.MESSAGE_ILLEGAL, fatal=True):
    """The message breaks a rule: size, properties, batch or timer."""


class ServiceNotAvailable(ResponseError, code=ResponseCode.SERVICE_NOT_AVAILABLE, retriable=True):
    """The store takes no writes: read-only, full, shutting down, or a slave."""


class VersionNotSupported(ResponseError, code=ResponseCode.VERSION_NOT_SUPPORTED, fatal=True):
    """Defined by the protocol, not sent by any release."""


class NoPermission(ResponseError, code=ResponseCode.NO_PERMISSION, retriable=True):
    """Permission bits, a reserved name or a policy forbid it; another broker may not."""


class TopicNotExist(ResponseError, code=ResponseCode.TOPIC_NOT_EXIST, retriable=True):
    """The topic is not known here and may not be created by sending."""


class TopicExistAlready(ResponseError, code=ResponseCode.TOPIC_EXIST_ALREADY, fatal=True):
    """Defined by the protocol, not sent by any release."""


class PullNotFound(ResponseError, code=ResponseCode.PULL_NOT_FOUND):
    """There is nothing new in the queue."""


class PullRetryImmediately(ResponseError, code=ResponseCode.PULL_RETRY_IMMEDIATELY):
    """Nothing matched the filter; pull again from `nextBeginOffset`."""


class PullOffsetMoved(ResponseError, code=ResponseCode.PULL_OFFSET_MOVED):
    """The offset is not in the queue; `nextBeginOffset` is the nearest that is."""


class QueryNotFound(ResponseError, code=ResponseCode.QUERY_NOT_FOUND):
    """No such value, committed offset or message."""


class SubscriptionParseFailed(
    ResponseError, code=ResponseCode.SUBSCRIPTION_PARSE_FAILED, fatal=True
):
    """The filter expression is wrong."""


class SubscriptionNotExist(ResponseError, code=ResponseCode.SUBSCRIPTION_NOT_EXIST):
    """The group is offline, or has not subscribed to the topic."""


class SubscriptionNotLatest(ResponseError, code=ResponseCode.SUBSCRIPTION_NOT_LATEST):
    """The broker has an older subscription; heartbeat, then pull again."""


class SubscriptionGroupNotExist(ResponseError, code=ResponseCode.SUBSCRIPTION_GROUP_NOT_EXIST):
    """No such consumer group, and it may not be created by consuming."""


class FilterDataNotExist(ResponseError, code=ResponseCode.FILTER_DATA_NOT_EXIST):
    """The broker has no compiled SQL92 filter for this group and topic."""


class FilterDataNotLatest(ResponseError, code=ResponseCode.FILTER_DATA_NOT_LATEST):
    """The broker has an older SQL92 filter than the request asks for."""


class InvalidParameter(ResponseError, code=ResponseCode.INVALID_PARAMETER, fatal=True):
    """A field has a value that cannot be (5.x; 4.9 says SYSTEM_ERROR)."""


class TransactionShouldCommit(ResponseError, code=ResponseCode.TRANSACTION_SHOULD_COMMIT):
    """Not used any more."""


class TransactionShouldRollback(ResponseError, code=ResponseCode.TRANSACTION_SHOULD_ROLLBACK):
    """Not used any more."""


class TransactionStateUnknown(ResponseError, code=ResponseCode.TRANSACTION_STATE_UNKNOW):
    """Not used any more."""


class TransactionStateGroupWrong(ResponseError, code=ResponseCode.TRANSACTION_STATE_GROUP_WRONG):
    """Not used any more."""


class NoBuyerId(ResponseError, code=ResponseCode.NO_BUYER_ID, retriable=True):
    """A unit hook found no buyer id."""


class NotInCurrentUnit(ResponseError, code=ResponseCode.NOT_IN_CURRENT_UNIT, retriable=True):
    """A unit hook says that the message belongs to another unit."""


class ConsumerNotOnline(ResponseError, code=ResponseCode.CONSUMER_NOT_ONLINE):
    """Nobody of the consumer group is connected."""


class ConsumeMessageTimeout(ResponseError, code=ResponseCode.CONSUME_MSG_TIMEOUT):
    """The consumer did not answer the broker in time."""


class NoMessage(ResponseError, code=ResponseCode.NO_MESSAGE):
    """The acknowledged offset is out of range, or a query found nothing."""


class PollingFull(ResponseError, code=ResponseCode.POLLING_FULL):
    """5.x: too many pops wait already. 4.9: the account was not created or changed."""


class PollingTimeout(ResponseError, code=ResponseCode.POLLING_TIMEOUT):
    """5.x: the pop waited in vain. 4.9: the account was not deleted."""


class BrokerNotExist(ResponseError, code=ResponseCode.BROKER_NOT_EXIST):
    """5.x: no such broker. 4.9: the addresses without account were not changed."""


class BrokerDispatchNotComplete(ResponseError, code=ResponseCode.BROKER_DISPATCH_NOT_COMPLETE):
    """Consume queues are still behind the commit log (5.x)."""


class BroadcastConsumption(ResponseError, code=ResponseCode.BROADCAST_CONSUMPTION):
    """The group broadcasts, so there is nothing to answer (5.x)."""


class FlowControl(ResponseError, code=ResponseCode.FLOW_CONTROL):
    """Too fast; pull a little later."""


class NotLeaderForQueue(ResponseError, code=ResponseCode.NOT_LEADER_FOR_QUEUE):
    """The logical queue lives on another broker (5.x)."""


class IllegalOperation(ResponseError, code=ResponseCode.ILLEGAL_OPERATION, fatal=True):
    """The transaction is over, or the recall handle is bad or expired (5.x)."""


class GoAway(ResponseError, code=ResponseCode.GO_AWAY, retriable=True):
    """The peer is shutting down; connect again and repeat (5.x)."""


class ControllerFencedMasterEpoch(ResponseError, code=ResponseCode.CONTROLLER_FENCED_MASTER_EPOCH):
    """The request carries an old master epoch."""


class ControllerFencedSyncStateSetEpoch(
    ResponseError, code=ResponseCode.CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH
):
    """The request carries an old epoch of the in-sync set."""


class ControllerInvalidMaster(ResponseError, code=ResponseCode.CONTROLLER_INVALID_MASTER):
    """The asking broker is not the master."""


class ControllerInvalidReplicas(ResponseError, code=ResponseCode.CONTROLLER_INVALID_REPLICAS):
    """The request names replicas that are not known."""


class ControllerMasterNotAvailable(
    ResponseError, code=ResponseCode.CONTROLLER_MASTER_NOT_AVAILABLE
):
    """No replica can be master now."""


class ControllerInvalidRequest(
    ResponseError, code=ResponseCode.CONTROLLER_INVALID_REQUEST, fatal=True
):
    """The fields of the request do not make sense together."""


class ControllerBrokerNotAlive(ResponseError, code=ResponseCode.CONTROLLER_BROKER_NOT_ALIVE):
    """The broker has been silent for too long."""


class ControllerNotLeader(ResponseError, code=ResponseCode.CONTROLLER_NOT_LEADER):
    """This controller does not lead; ask the one that does."""


class ControllerBrokerMetadataNotExist(
    ResponseError, code=ResponseCode.CONTROLLER_BROKER_METADATA_NOT_EXIST
):
    """The controller does not know the broker."""


class ControllerInvalidCleanBrokerMetadata(
    ResponseError, code=ResponseCode.CONTROLLER_INVALID_CLEAN_BROKER_METADATA
):
    """The broker cannot be forgotten: it is alive or not known."""


class ControllerBrokerNeedToBeRegistered(
    ResponseError, code=ResponseCode.CONTROLLER_BROKER_NEED_TO_BE_REGISTERED
):
    """The broker must register first."""


class ControllerMasterStillExist(ResponseError, code=ResponseCode.CONTROLLER_MASTER_STILL_EXIST):
    """There is a master already."""


class ControllerElectMasterFailed(ResponseError, code=ResponseCode.CONTROLLER_ELECT_MASTER_FAILED):
    """No master was elected."""


class ControllerAlterSyncStateSetFailed(
    ResponseError, code=ResponseCode.CONTROLLER_ALTER_SYNC_STATE_SET_FAILED
):
    """The in-sync set was not changed."""


class ControllerBrokerIdInvalid(ResponseError, code=ResponseCode.CONTROLLER_BROKER_ID_INVALID):
    """The broker id is taken, or was never applied for."""


class ControllerRaftError(ResponseError, code=ResponseCode.CONTROLLER_JRAFT_INTERNAL_ERROR):
    """The controllers cannot agree among themselves."""


class ControllerBrokerLiveInfoNotExist(
    ResponseError, code=ResponseCode.CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS
):
    """Nothing is known about the life of that broker."""


class LightQueueQuotaExceeded(ResponseError, code=ResponseCode.LMQ_QUOTA_EXCEEDED):
    """There are too many light queues (5.5)."""


class LiteSubscriptionQuotaExceeded(
    ResponseError, code=ResponseCode.LITE_SUBSCRIPTION_QUOTA_EXCEEDED
):
    """There are too many light subscriptions (5.5)."""


class UserNotExist(ResponseError, code=ResponseCode.USER_NOT_EXIST):
    """There is no such user (5.x)."""


class PolicyNotExist(ResponseError, code=ResponseCode.POLICY_NOT_EXIST):
    """There is no such policy (5.x)."""


class RpcUnknown(ResponseError, code=ResponseCode.RPC_UNKNOWN):
    """A call between brokers failed (5.x)."""


class RpcAddressIsNull(ResponseError, code=ResponseCode.RPC_ADDR_IS_NULL):
    """A call between brokers had no address to go to (5.x)."""


class RpcSendToChannelFailed(ResponseError, code=ResponseCode.RPC_SEND_TO_CHANNEL_FAILED):
    """A call between brokers could not be sent (5.x)."""


class RpcTimeout(ResponseError, code=ResponseCode.RPC_TIME_OUT):
    """A call between brokers was not answered (5.x)."""
