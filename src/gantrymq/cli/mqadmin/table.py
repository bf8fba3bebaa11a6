"""Every sub-command of mqadmin: where it is implemented, its options, what it is for.

An option is `-short/long`, with `=` behind it if it takes a value and `!` if it must be given. The
names are those of Apache RocketMQ 4.9.7 and 5.5.0; one that both have takes the options of both.
Nothing else is imported here: completion and help read this table alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Spec(NamedTuple):
    """A sub-command."""

    module: str
    """Of `gantrymq.cli.mqadmin`; the function is the command in snake_case."""
    options: str
    about: str


BROKER_OR_CLUSTER: Final = "-b/brokerAddr= -c/clusterName="
_BC: Final = BROKER_OR_CLUSTER

SPECS: Final[dict[str, Spec]] = {
    # -- topics
    "updateTopic": Spec(
        "topics",
        f"{_BC} -t/topic=! -r/readQueueNums= -w/writeQueueNums= -p/perm= -o/order= -u/unit="
        " -s/hasUnitSub= -a/attributes=",
        "make a topic, or change it",
    ),
    "updateTopicList": Spec("topics", f"{_BC} -f/filename=!", "make the topics of a JSON file"),
    "deleteTopic": Spec("topics", "-t/topic=! -c/clusterName=!", "delete a topic"),
    "updateTopicPerm": Spec(
        "topics", f"{_BC} -t/topic=! -p/perm=!", "change what may be done with a topic"
    ),
    "topicRoute": Spec("topics", "-t/topic=! -l/list", "where a topic is"),
    "topicStatus": Spec("topics", "-t/topic=! -c/cluster=", "what the queues of a topic hold"),
    "topicClusterList": Spec("topics", "-t/topic=!", "the clusters that have a topic"),
    "topicList": Spec("topics", "-c/clusterModel", "all topics; -c: with cluster and groups"),
    "updateOrderConf": Spec(
        "topics", "-t/topic=! -v/orderConf= -m/method=!", "get, put or delete a topic's order"
    ),
    "allocateMQ": Spec("topics", "-t/topic=! -i/ipList=!", "how queues would be shared out"),
    "statsAll": Spec("stats", "-a/activeTopic -t/topic=", "rates of topics and their groups"),
    # -- groups
    "updateSubGroup": Spec(
        "groups",
        f"{_BC} -g/groupName=! -s/consumeEnable= -m/consumeFromMinEnable="
        " -d/consumeBroadcastEnable= -o/consumeMessageOrderly= -q/retryQueueNums="
        " -r/retryMaxTimes= -i/brokerId= -w/whichBrokerWhenConsumeSlowly="
        " -a/notifyConsumerIdsChanged=",
        "make a consumer group, or change it",
    ),
    "updateSubGroupList": Spec("groups", f"{_BC} -f/filename=!", "make the groups of a JSON file"),
    "deleteSubGroup": Spec(
        "groups", f"{_BC} -g/groupName=! -r/removeOffset=", "delete a consumer group"
    ),
    "getConsumerConfig": Spec("groups", "-g/groupName=!", "a group's settings on every broker"),
    "setConsumeMode": Spec(
        "groups",
        f"{_BC} -t/topicName=! -g/groupName=! -m/mode=! -q/popShareQueueNum=",
        "have a group pull or pop a topic",
    ),
    "consumerConnection": Spec(
        "groups", "-g/consumerGroup=! -b/brokerAddr=", "who is in a group, and what they take"
    ),
    "consumerProgress": Spec(
        "progress",
        "-g/groupName= -t/topicName= -s/showClientIP= -c/cluster=",
        "how far groups are",
    ),
    "consumerStatus": Spec(
        "running",
        "-g/consumerGroup=! -i/clientId= -b/brokerAddr= -s/jstack",
        "what the members of a group say of themselves",
    ),
    "consumer": Spec("running", "-g/consumerGroup=! -s/jstack", "the same as consumerStatus"),
    "producerConnection": Spec(
        "groups", "-g/producerGroup=! -t/topic=!", "who produces, in a group for a topic"
    ),
    "producer": Spec("groups", "-b/broker=!", "all producers of a broker"),
    "startMonitoring": Spec(
        "progress",
        "--interval= --rounds= --behind=",
        "look at all groups again and again, and say who falls behind",
    ),
    # -- offsets
    "resetOffsetByTime": Spec(
        "offsets",
        "-g/group=! -t/topic=! -s/timestamp=! -f/force= -c/cplus? -b/broker= -q/queue= -o/offset=",
        "move a group to a time, online",
    ),
    "resetOffsetByTimeOld": Spec(
        "offsets",
        "-g/group=! -t/topic=! -s/timestamp=! -f/force= -c/cluster=",
        "move a group that is offline to a time",
    ),
    "skipAccumulatedMessage": Spec(
        "offsets", "-g/group=! -t/topic=! -f/force= -c/cluster=", "move a group to the end"
    ),
    "cloneGroupOffset": Spec(
        "offsets", "-s/srcGroup=! -d/destGroup=! -t/topic=! -o/offline=", "copy offsets to a group"
    ),
    "getConsumerStatus": Spec(
        "offsets", "-g/group=! -t/topic=! -i/originClientId=", "where the members of a group are"
    ),
    # -- messages
    "queryMsgById": Spec(
        "messages",
        "-i/msgId=! -t/topic= -g/consumerGroup= -d/clientId= -s/sendMessage= -u/unitName="
        " -f/bodyFormat= -c/cluster=",
        "a message by its offset id; -g -d: have a member take it; -s true: send it again",
    ),
    "queryMsgByKey": Spec(
        "messages",
        "-t/topic=! -k/msgKey=! -b/beginTimestamp= -e/endTimestamp= -m/maxNum= -c/cluster=",
        "messages with a key",
    ),
    "queryMsgByUniqueKey": Spec(
        "messages",
        "-i/msgId=! -t/topic=! -g/consumerGroup= -d/clientId= -a/showAll -c/cluster=",
        "a message by the id that its client gave it",
    ),
    "queryMsgByOffset": Spec(
        "messages",
        "-t/topic=! -b/brokerName=! -i/queueId=! -o/offset=! -f/bodyFormat=",
        "the message at a place",
    ),
    "queryMsgTraceById": Spec(
        "traces",
        "-i/msgId=! -t/traceTopic= -b/beginTimestamp= -e/endTimestamp= -c/maxNum=",
        "what traces say of a message",
    ),
    "printMsg": Spec(
        "reading",
        "-t/topic=! -c/charsetName= -s/subExpression= -b/beginTimestamp= -e/endTimestamp="
        " -d/printBody= -l/lmqParentTopic= --max=",
        "the messages of a topic",
    ),
    "printMsgByQueue": Spec(
        "reading",
        "-t/topic=! -a/brokerName=! -i/queueId=! -c/charsetName= -s/subExpression="
        " -b/beginTimestamp= -e/endTimestamp= -p/printMsg= -d/printBody= -f/calculate= --max=",
        "the messages of a queue",
    ),
    "consumeMessage": Spec(
        "reading",
        "-t/topic=! -b/brokerName= -i/queueId= -o/offset= -g/consumerGroup= -s/beginTimestamp="
        " -e/endTimestamp= -c/MessageNumber=",
        "read messages of a topic",
    ),
    "sendMessage": Spec(
        "sending",
        "-t/topic=! -p/body=! -k/key= -c/tags= -b/broker= -i/qid= -m/msgTraceEnable=",
        "send a message",
    ),
    "sendMsgStatus": Spec(
        "sending", "-b/brokerName=! -s/messageSize= -c/count=", "send to a broker, and say how"
    ),
    "checkMsgSendRT": Spec(
        "sending", "-t/topic=! -a/amount= -s/size=", "how long sends to a topic take"
    ),
    "clusterRT": Spec(
        "sending",
        "-a/amount= -s/size= -c/cluster= -p/printLog= -m/machineRoom= -i/interval=",
        "how long sends to all brokers take",
    ),
    "DecodeMessageId": Spec("messages", "-i/messageId=!", "what is in a message id"),
    "queryCq": Spec(
        "queues",
        "-t/topic=! -q/queue=! -i/index=! -c/count= -b/broker= -g/consumer=",
        "units of a consume queue",
    ),
    # -- brokers
    "clusterList": Spec(
        "clusters", "-m/moreStats -i/interval= -c/clusterName=", "all brokers and their load"
    ),
    "brokerStatus": Spec("brokers", _BC, "a broker's figures"),
    "brokerConsumeStats": Spec(
        "brokers",
        "-b/brokerAddr=! -t/timeoutMillis= -l/level= -o/order=",
        "how far all groups of a broker are behind",
    ),
    "getBrokerConfig": Spec("brokers", _BC, "a broker's settings"),
    "updateBrokerConfig": Spec(
        "brokers", f"{_BC} -a/updateAllBroker= -k/key=! -v/value=!", "change a broker's setting"
    ),
    "cleanExpiredCQ": Spec("brokers", "-b/brokerAddr= -c/cluster=", "delete old queue files"),
    "cleanUnusedTopic": Spec(
        "brokers", "-b/brokerAddr= -c/cluster=", "delete the queues of topics that are no more"
    ),
    "deleteExpiredCommitLog": Spec(
        "brokers", "-b/brokerAddr= -c/cluster=", "delete log files that are expired"
    ),
    "wipeWritePerm": Spec("namesrv", "-b/brokerName=!", "let clients write to a broker no more"),
    "addWritePerm": Spec("namesrv", "-b/brokerName=!", "let clients write to a broker again"),
    "haStatus": Spec("brokers", f"{_BC} -i/interval=", "how replication stands"),
    "getColdDataFlowCtrInfo": Spec("newer", _BC, "limits on reads from disk"),
    "updateColdDataFlowCtrGroupConfig": Spec(
        "newer", f"{_BC} -g/consumerGroup=! -v/threshold=!", "limit a group's reads from disk"
    ),
    "removeColdDataFlowCtrGroupConfig": Spec(
        "newer", f"{_BC} -g/consumerGroup=!", "limit a group's reads from disk no more"
    ),
    "setCommitLogReadAheadMode": Spec(
        "newer", f"{_BC} -m/commitLogReadAheadMode=!", "how the system reads log files ahead"
    ),
    "resetMasterFlushOffset": Spec(
        "newer", "-b/brokerAddr=! -o/offset=!", "set a slave's idea of its master's flush"
    ),
    "switchTimerEngine": Spec("newer", f"{_BC} -e/engineType=!", "change what keeps timers"),
    "exportPopRecord": Spec(
        "newer", f"{_BC} -d/dryRun=", "write what pop consumers hold to topics"
    ),
    "checkRocksdbCqWriteProgress": Spec(
        "newer", "-c/cluster=! -t/topic= -cf/checkFrom=", "compare RocksDB queues with files"
    ),
    "rocksDBConfigToJson": Spec(
        "newer",
        "-t/configType= -b/brokerAddr= -c/cluster= -p/configPath= -e/exportFile= -j/jsonEnable=",
        "have a broker write its RocksDB tables as JSON",
    ),
    "addBroker": Spec(
        "newer", "-c/brokerContainerAddr=! -b/brokerConfigPath=!", "start a broker in a container"
    ),
    "removeBroker": Spec(
        "newer", "-c/brokerContainerAddr=! -b/brokerIdentity=!", "stop a broker of a container"
    ),
    # -- controllers
    "getControllerMetaData": Spec("controllers", "-a/controllerAddress=!", "who leads controllers"),
    "getControllerConfig": Spec("controllers", "-a/controllerAddress=!", "their settings"),
    "updateControllerConfig": Spec(
        "controllers", "-a/controllerAddress=! -k/key=! -v/value=!", "change such a setting"
    ),
    "getSyncStateSet": Spec(
        "controllers",
        "-a/controllerAddress=! -c/clusterName= -b/brokerName= -i/interval=",
        "which members of a broker group have everything",
    ),
    "getBrokerEpoch": Spec(
        "controllers", "-c/clusterName= -b/brokerName= -i/interval=", "when which master reigned"
    ),
    "electMaster": Spec(
        "controllers",
        "-a/controllerAddress=! -b/brokerId=! -bn/brokerName=! -c/clusterName=!",
        "make a broker the master",
    ),
    "cleanBrokerMetadata": Spec(
        "controllers",
        "-a/controllerAddress=! -b/brokerControllerIdsToClean= -bn/brokerName=!"
        " -c/clusterName= -l/cleanLivingBroker",
        "have a controller forget a broker",
    ),
    # -- name servers
    "getNamesrvConfig": Spec("namesrv", "", "settings of the name servers"),
    "updateNamesrvConfig": Spec("namesrv", "-k/key=! -v/value=!", "change such a setting"),
    "updateKvConfig": Spec("namesrv", "-s/namespace=! -k/key=! -v/value=!", "set a value"),
    "deleteKvConfig": Spec("namesrv", "-s/namespace=! -k/key=!", "delete a value"),
    # -- exports
    "exportMetadata": Spec(
        "exports",
        f"{_BC} -f/filePath= -t/topic -g/subscriptionGroup -s/specialTopic",
        "write topics and groups to metadata.json",
    ),
    "exportConfigs": Spec(
        "exports", "-c/clusterName=! -f/filePath=", "write brokers' settings to configs.json"
    ),
    "exportMetrics": Spec(
        "exports", "-c/clusterName=! -f/filePath=", "write brokers' figures to metrics.json"
    ),
    # -- access: accounts of 4.9
    "updateAclConfig": Spec(
        "accounts",
        f"{_BC} -a/accessKey=! -s/secretKey=! -w/whiteRemoteAddress= -i/defaultTopicPerm="
        " -u/defaultGroupPerm= -t/topicPerms= -g/groupPerms= -m/admin=",
        "make an account (4.9), or change it",
    ),
    "deleteAclConfig": Spec("accounts", f"{_BC} -a/accessKey=!", "delete an account (4.9)"),
    "clusterAclConfigVersion": Spec("accounts", _BC, "how new the accounts are (4.9)"),
    "updateGlobalWhiteAddr": Spec(
        "accounts",
        f"{_BC} -g/globalWhiteRemoteAddresses=! -p/aclFileFullPath=",
        "addresses that need no account (4.9)",
    ),
    "getAclConfig": Spec("accounts", _BC, "all accounts (4.9)"),
    # -- access: users and rules of 5.x
    "createUser": Spec(
        "users", f"{_BC} -u/username=! -p/password=! -t/userType=", "make a user (5.x)"
    ),
    "updateUser": Spec(
        "users",
        f"{_BC} -u/username=! -p/password= -t/userType= -s/userStatus=",
        "change a user (5.x)",
    ),
    "deleteUser": Spec("users", f"{_BC} -u/username=!", "delete a user (5.x)"),
    "getUser": Spec("users", f"{_BC} -u/username=!", "a user (5.x)"),
    "listUser": Spec("users", f"{_BC} -f/filter=", "all users (5.x)"),
    "copyUser": Spec(
        "users", "-f/fromBroker=! -t/toBroker=! -u/usernames=", "copy users between brokers (5.x)"
    ),
    "createAcl": Spec(
        "users",
        f"{_BC} -s/subject=! -r/resources=! -a/actions=! -d/decision=! -i/sourceIp=",
        "make a rule (5.x)",
    ),
    "updateAcl": Spec(
        "users",
        f"{_BC} -s/subject=! -r/resources=! -a/actions=! -d/decision=! -i/sourceIp=",
        "change a rule (5.x)",
    ),
    "deleteAcl": Spec("users", f"{_BC} -s/subject=! -r/resources=", "delete rules (5.x)"),
    "getAcl": Spec("users", f"{_BC} -s/subject=!", "the rules of a subject (5.x)"),
    "listAcl": Spec("users", f"{_BC} -s/subject= -r/resource=", "all rules (5.x)"),
    "copyAcl": Spec(
        "users", "-f/fromBroker=! -t/toBroker=! -s/subjects=", "copy rules between brokers (5.x)"
    ),
}

STATIC: Final = "static topics, whose queues move between brokers, are not supported here"
LITE: Final = "light topics are not supported here"
ROCKSDB: Final = "it reads RocksDB files, which gantrymq does not have"

LEFT_OUT: Final[dict[str, str]] = {
    "updateStaticTopic": STATIC,
    "remappingStaticTopic": STATIC,
    "getBrokerLiteInfo": LITE,
    "getParentTopicInfo": LITE,
    "getLiteTopicInfo": LITE,
    "getLiteClientInfo": LITE,
    "getLiteGroupInfo": LITE,
    "triggerLiteDispatch": LITE,
    "dumpCompactionLog": "it reads the files of compacted topics, which gantrymq does not have",
    "exportMetadataInRocksDB": ROCKSDB,
}
"""5.5.0's commands that do not apply, with the reason; they are answered with it."""
