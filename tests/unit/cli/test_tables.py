"""The tables of commands: every entry has its function, and the modules have no others."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import pytest

from gantrymq.cli.daily import apply as applying
from gantrymq.cli.daily import clients, completion, doctor, explain, redriving, resets
from gantrymq.cli.daily import clusters as daily_clusters
from gantrymq.cli.daily import dlq as dead_letters
from gantrymq.cli.daily import groups as daily_groups
from gantrymq.cli.daily import messages as daily_messages
from gantrymq.cli.daily import quotas as daily_quotas
from gantrymq.cli.daily import topics as daily_topics
from gantrymq.cli.daily.table import ALONE, NOUNS
from gantrymq.cli.mqadmin import (
    accounts,
    brokers,
    clusters,
    controllers,
    exports,
    groups,
    messages,
    namesrv,
    newer,
    offsets,
    progress,
    queues,
    reading,
    running,
    sending,
    stats,
    topics,
    traces,
    users,
)
from gantrymq.cli.mqadmin.command import function_name
from gantrymq.cli.mqadmin.table import SPECS

if TYPE_CHECKING:
    from types import ModuleType

MQADMIN: list[ModuleType] = [
    accounts, brokers, clusters, controllers, exports, groups, messages, namesrv, newer, offsets,
    progress, queues, reading, running, sending, stats, topics, traces, users,
]  # fmt: skip
DAILY: list[ModuleType] = [
    applying, clients, completion, daily_clusters, daily_groups, daily_messages, daily_quotas,
    daily_topics, dead_letters, doctor, explain, redriving, resets,
]  # fmt: skip


def by_name(modules: list[ModuleType]) -> dict[str, ModuleType]:
    return {module.__name__.rpartition(".")[2]: module for module in modules}


@pytest.mark.parametrize("name", SPECS)
def test_a_sub_command_of_mqadmin_has_its_function(name: str) -> None:
    module = by_name(MQADMIN)[SPECS[name].module]
    assert inspect.iscoroutinefunction(getattr(module, function_name(name)))


def test_a_guessable_command_has_its_function() -> None:
    verbs = [verb for found in NOUNS.values() for verb in found.values()] + list(ALONE.values())
    for verb in verbs:
        if verb.module:  # the demonstration has a way of its own
            function = getattr(by_name(DAILY)[verb.module], verb.function)
            assert inspect.iscoroutinefunction(function), verb


def test_every_module_has_a_command() -> None:
    assert set(by_name(MQADMIN)) == {spec.module for spec in SPECS.values()}
    told = [*ALONE.values(), *(verb for found in NOUNS.values() for verb in found.values())]
    assert set(by_name(DAILY)) == {verb.module for verb in told if verb.module}
