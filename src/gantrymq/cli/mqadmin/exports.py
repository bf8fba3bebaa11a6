"""Sub-commands that write a cluster's settings and figures to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

from gantrymq.admin import brokers, groups, topics
from gantrymq.cli.mqadmin.groups import group_data
from gantrymq.cli.mqadmin.topics import topic_data
from gantrymq.cli.output import Answer
from gantrymq.errors import InvalidValue
from gantrymq.model.names import is_system_group, is_system_topic

if TYPE_CHECKING:
    from gantrymq.admin.session import Session
    from gantrymq.cli.given import Given

FOLDER = "./rocketmq-export"
CLIENT_KEYS = ("brokerName", "brokerId", "brokerClusterName", "brokerRole", "flushDiskType",
               "fileReservedTime", "filterServerNums", "diskMaxUsedSpaceRatio", "deleteWhen",
               "autoCreateTopicEnable", "autoCreateSubscriptionGroup", "namesrvAddr",
               "brokerIP1", "brokerIP2", "listenPort", "storePathRootDir",
               "enablePropertyFilter", "slaveReadEnable", "messageDelayLevel")  # fmt: skip


def _write(folder: str | None, name: str, data: object) -> Answer:
    path = Path(folder or FOLDER) / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise InvalidValue(f"{path}: {error.strerror or error}") from None
    return Answer([f"export {path} success"], {"file": str(path)})


async def export_metadata(session: Session, given: Given) -> Answer:
    """Write topics and groups to a file."""
    broker, cluster = given.maybe("brokerAddr"), given.maybe("clusterName")
    addresses = await session.targets(broker, cluster)
    only_topics, only_groups = given.yes("topic"), given.yes("subscriptionGroup")
    with_system = given.yes("specialTopic")
    found_topics: dict[str, object] = {}
    found_groups: dict[str, object] = {}
    for address in addresses:
        system = await brokers.system_topics_of(session, address)
        if not only_groups:
            found_topics |= {
                name: topic_data(topic)
                for name, topic in (await topics.topic_table(session, address)).items()
                if with_system or (name not in system and not is_system_topic(name))
            }
        if not only_topics:
            found_groups |= {
                name: group_data(group)
                for name, group in (await groups.group_table(session, address)).items()
                if not is_system_group(name)
            }
    name = "topic.json" if only_topics else "subscriptionGroup.json" if only_groups else (
        "metadata.json")  # fmt: skip
    data = {"topicConfigTable": found_topics, "subscriptionGroupTable": found_groups,
            "exportTime": session.clock.now_ms()}  # fmt: skip
    return _write(given.maybe("filePath"), name, data)


async def export_configs(session: Session, given: Given) -> Answer:
    """Write brokers' settings to a file."""
    cluster = given.text("clusterName")
    masters = await session.masters(cluster)
    everyone = await session.addresses(cluster)
    told = {}
    for name, address in masters.items():
        settings = await brokers.broker_settings(session, address)
        told[name] = {key: settings[key] for key in CLIENT_KEYS if key in settings}
    data = {
        "brokerConfigs": told,
        "clusterScale": {
            "namesrvSize": len(session.name_servers),
            "masterBrokerSize": len(masters),
            "slaveBrokerSize": len(everyone) - len(masters),
        },
    }
    return _write(given.maybe("filePath"), "configs.json", data)


async def export_metrics(session: Session, given: Given) -> Answer:
    """Write brokers' figures to a file."""
    cluster = given.text("clusterName")
    told = {}
    for name, address in (await session.masters(cluster)).items():
        figures = await brokers.runtime_info(session, address)
        told[name] = {
            "runtimeEnv": {key: figures.get(key) for key in (
                "commitLogDiskRatio", "consumeQueueDiskRatio", "totalMemKBytes")},
            "runtimeQuota": {key: figures.get(key) for key in (
                "putTps", "getTransferedTps", "msgPutTotalTodayNow", "msgGetTotalTodayNow",
                "msgPutTotalTodayMorning", "msgGetTotalTodayMorning", "putMessageAverageSize")},
            "topicSize": len(await topics.topic_table(session, address)),
            "groupSize": len(await groups.group_table(session, address)),
            "runtimeVersion": {"rocketmqVersion": figures.get("brokerVersionDesc")},
        }  # fmt: skip
    return _write(given.maybe("filePath"), "metrics.json", {"evaluateReport": told})
