"""Settings of brokers and name servers: seen side by side, and changed where that is safe.

A change is possible only for the settings listed here. None is a path, an address, a command or a
credential; an Apache broker would take any of those from anybody who can reach it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gantrymq.admin import brokers as brokers_of
from gantrymq.dashboard.calls import Endpoint, problem_data
from gantrymq.errors import InvalidValue
from gantrymq.model.roles import Role

if TYPE_CHECKING:
    from gantrymq.dashboard.calls import Call

CHANGEABLE: Final = frozenset(
    {
        "autoCreateSubscriptionGroup", "brokerFastFailureEnable", "brokerPermission",
        "cleanFileForciblyEnable", "consumerFallbehindThreshold", "deleteWhen",
        "disableConsumeIfConsumerReadSlowly", "diskMaxUsedSpaceRatio",
        "enableCalcFilterBitMap", "enablePropertyFilter", "fileReservedTime",
        "filterSupportRetry", "flushCommitLogLeastPages", "flushCommitLogThoroughInterval",
        "flushCommitLogTimed", "flushConsumerOffsetInterval", "flushIntervalCommitLog",
        "flushIntervalConsumeQueue", "longPollingEnable", "maxMessageSize",
        "notifyConsumerIdsChangedEnable", "osPageCacheBusyTimeOutMills",
        "rejectTransactionMessage", "slaveReadEnable", "storeReplyMessageEnable",
        "syncFlushTimeout", "traceOn", "transactionCheckInterval", "transactionCheckMax",
        "transactionTimeOut", "waitTimeMillsInPullQueue", "waitTimeMillsInSendQueue",
    }
)  # fmt: skip
"""Settings that a broker takes while it runs and that an operator may want to change."""
VALUE_CHARACTERS_MAX: Final = 256
HIDDEN: Final = ("password", "secret", "accesskey", "token", "credential", "authenticationuser")
"""Settings whose names have one of these in them are not shown."""
HIDDEN_VALUES: Final = ("password", "secret", "accesskey")
"""Nor are those whose values have: some hold JSON with a credential in it."""


def shown_value(name: str, value: str) -> str:
    """Return a setting as a page may show it."""
    is_hidden = any(each in name.lower() for each in HIDDEN)
    is_hidden |= any(each in value.lower() for each in HIDDEN_VALUES)
    return "••••••" if value and is_hidden else value


async def broker_settings(call: Call) -> object:
    """Return the settings of all masters side by side; those that differ are marked."""
    masters = await call.session.masters()

    async def ask(name: str) -> dict[str, str]:
        return await brokers_of.broker_settings(call.session, masters[name])

    answers = await call.session.gather(masters, ask)
    answers.check()
    brokers = sorted(answers.found)
    names = sorted({name for found in answers.found.values() for name in found})
    wanted = (call.maybe("filter") or "").lower()
    rows = []
    for name in names:
        if wanted not in name.lower():
            continue
        values = [answers.found[broker].get(name) for broker in brokers]
        rows.append({
            "name": name,
            "values": [None if each is None else shown_value(name, each) for each in values],
            "differs": len(set(values)) > 1,
            "changeable": name in CHANGEABLE,
        })  # fmt: skip
    return {"brokers": brokers, "rows": rows, **problem_data(answers.complaints)}


async def name_server_settings(call: Call) -> object:
    """Return the settings of all name servers side by side."""
    answers = await brokers_of.name_server_settings(call.session)
    answers.check()
    servers = list(answers.found)
    told = {server: brokers_of.settings_in(answers.found[server]) for server in servers}
    names = sorted({name for found in told.values() for name in found})
    rows = [
        {"name": name, "values": [
            shown_value(name, told[server].get(name, "")) for server in servers
        ]}
        for name in names
    ]  # fmt: skip
    return {"servers": servers, "rows": rows, **problem_data(answers.complaints)}


async def change(call: Call) -> object:
    """Change one setting of a broker while it runs."""
    broker, name = call.text("broker"), call.text("name")
    value = call.raw("value", VALUE_CHARACTERS_MAX)
    if name not in CHANGEABLE:
        raise InvalidValue(f"{name[:64]} cannot be changed from here")
    if value is None or not value.isprintable():
        raise InvalidValue("the value is missing, or has characters that no setting has")
    address = await call.session.master_of(broker)
    before = (await brokers_of.broker_settings(call.session, address)).get(name)
    call.detail = f"{name} from {before} to {value}"
    await brokers_of.change_broker(call.session, address, {name: value.strip()})
    after = (await brokers_of.broker_settings(call.session, address)).get(name)
    return {"broker": broker, "name": name, "before": before, "after": after}


ENDPOINTS: Final = (
    Endpoint("GET", "/api/configuration", Role.VIEWER, broker_settings),
    Endpoint("GET", "/api/configuration/name-servers", Role.VIEWER, name_server_settings),
    Endpoint(
        "POST", "/api/configuration", Role.ADMIN, change, "change a setting",
        about=("broker", "name"),
    ),
)  # fmt: skip
