"""Request codes, response codes, languages and versions: the numbers of the remoting protocol.

A response code's exception class is in `response_errors`; a request code's header schemas are in
`registry`. In the remarks NS is a name server, BR a broker, and "4.9" or "5.x" says that only
that line of Apache RocketMQ knows the code.
"""

from enum import IntEnum
from typing import Final


class RequestCode(IntEnum):
    """What a request asks for."""

    # Producers and consumers
    SEND_MESSAGE = 10  # store a message; long field names
    PULL_MESSAGE = 11  # read from a queue offset on
    QUERY_MESSAGE = 12  # find messages by key and time
    QUERY_BROKER_OFFSET = 13  # no broker handles it
    QUERY_CONSUMER_OFFSET = 14  # read a group's committed offset
    UPDATE_CONSUMER_OFFSET = 15  # commit a group's offset
    UPDATE_AND_CREATE_TOPIC = 17  # create or change a topic
    UPDATE_AND_CREATE_TOPIC_LIST = 18  # create or change several topics; 5.x
    GET_ALL_TOPIC_CONFIG = 21  # all topics of a broker
    GET_TOPIC_CONFIG_LIST = 22  # no broker handles it
    GET_TOPIC_NAME_LIST = 23  # no broker handles it
    UPDATE_BROKER_CONFIG = 25  # change settings of a running broker
    GET_BROKER_CONFIG = 26  # read the settings of a broker
    TRIGGER_DELETE_FILES = 27  # no broker handles it
    GET_BROKER_RUNTIME_INFO = 28  # counters and state of a broker
    SEARCH_OFFSET_BY_TIMESTAMP = 29  # the queue offset at a store time
    GET_MAX_OFFSET = 30  # the next queue offset to be written
    GET_MIN_OFFSET = 31  # the first queue offset still stored
    GET_EARLIEST_MSG_STORETIME = 32  # store time of the first message of a queue
    VIEW_MESSAGE_BY_ID = 33  # one message by its log offset
    HEART_BEAT = 34  # a client says who it is and what it subscribes to
    UNREGISTER_CLIENT = 35  # a client leaves a group
    CONSUMER_SEND_MSG_BACK = 36  # consumption failed: deliver again later
    END_TRANSACTION = 37  # commit or roll back a half message
    GET_CONSUMER_LIST_BY_GROUP = 38  # client ids of a group's members
    CHECK_TRANSACTION_STATE = 39  # BR to producer: what became of this half message?
    NOTIFY_CONSUMER_IDS_CHANGED = 40  # BR to consumer: members changed, balance again
    LOCK_BATCH_MQ = 41  # lock queues for orderly consumption
    UNLOCK_BATCH_MQ = 42  # give such locks back
    GET_ALL_CONSUMER_OFFSET = 43  # slave copies the committed offsets
    GET_ALL_DELAY_OFFSET = 45  # slave copies the progress of delayed delivery
    CHECK_CLIENT_CONFIG = 46  # is this subscription expression acceptable?
    GET_CLIENT_CONFIG = 47  # no broker handles it

    # Access control lists, 4.9
    UPDATE_AND_CREATE_ACL_CONFIG = 50  # create or change an account
    DELETE_ACL_CONFIG = 51  # delete an account
    GET_BROKER_CLUSTER_ACL_INFO = 52  # version of the account file
    UPDATE_GLOBAL_WHITE_ADDRS_CONFIG = 53  # addresses that need no account
    GET_BROKER_CLUSTER_ACL_CONFIG = 54  # all accounts

    # Timer, 5.x
    GET_TIMER_CHECK_POINT = 60  # slave copies the timer's progress
    GET_TIMER_METRICS = 61  # slave copies the count of timer messages by topic

    # Name server
    PUT_KV_CONFIG = 100  # store a value in the name server
    GET_KV_CONFIG = 101  # read one
    DELETE_KV_CONFIG = 102  # delete one
    REGISTER_BROKER = 103  # BR to NS: address and topics
    UNREGISTER_BROKER = 104  # BR to NS: going away
    GET_ROUTEINFO_BY_TOPIC = 105  # where the queues of a topic are
    GET_BROKER_CLUSTER_INFO = 106  # all clusters, brokers and addresses

    # Administration
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP = 200  # create or change a consumer group
    GET_ALL_SUBSCRIPTIONGROUP_CONFIG = 201  # all consumer groups of a broker
    GET_TOPIC_STATS_INFO = 202  # offsets and times of a topic's queues
    GET_CONSUMER_CONNECTION_LIST = 203  # who consumes in a group
    GET_PRODUCER_CONNECTION_LIST = 204  # who produces in a group
    WIPE_WRITE_PERM_OF_BROKER = 205  # NS: route no sends to a broker
    GET_ALL_TOPIC_LIST_FROM_NAMESERVER = 206  # every topic name
    DELETE_SUBSCRIPTIONGROUP = 207  # delete a consumer group
    GET_CONSUME_STATS = 208  # how far a group is behind
    SUSPEND_CONSUMER = 209  # no broker handles it
    RESUME_CONSUMER = 210  # no broker handles it
    RESET_CONSUMER_OFFSET_IN_CONSUMER = 211  # no broker handles it
    RESET_CONSUMER_OFFSET_IN_BROKER = 212  # no broker handles it
    ADJUST_CONSUMER_THREAD_POOL = 213  # no broker handles it
    WHO_CONSUME_THE_MESSAGE = 214  # no broker handles it
    DELETE_TOPIC_IN_BROKER = 215  # delete a topic's data and settings
    DELETE_TOPIC_IN_NAMESRV = 216  # delete a topic's route
    REGISTER_TOPIC_IN_NAMESRV = 217  # BR to NS: one topic; 5.x (3.x: GET_KV_CONFIG_BY_VALUE)
    GET_KVLIST_BY_NAMESPACE = 219  # every value of a namespace in the name server
    RESET_CONSUMER_CLIENT_OFFSET = 220  # BR to consumer: go on from these offsets
    GET_CONSUMER_STATUS_FROM_CLIENT = 221  # BR to consumer: what are your offsets?
    INVOKE_BROKER_TO_RESET_OFFSET = 222  # move a group to a time
    INVOKE_BROKER_TO_GET_CONSUMER_STATUS = 223  # offsets as the consumers see them
    GET_TOPICS_BY_CLUSTER = 224  # topic names of a cluster
    UPDATE_AND_CREATE_SUBSCRIPTIONGROUP_LIST = 225  # create or change several groups; 5.x
    QUERY_TOPIC_CONSUME_BY_WHO = 300  # groups that consume a topic
    REGISTER_FILTER_SERVER = 301  # no broker handles it
    REGISTER_MESSAGE_FILTER_CLASS = 302  # no broker handles it
    QUERY_CONSUME_TIME_SPAN = 303  # times of the first, last and consumed message
    GET_SYSTEM_TOPIC_LIST_FROM_NS = 304  # cluster and broker names, which are topics too
    GET_SYSTEM_TOPIC_LIST_FROM_BROKER = 305  # names of built-in topics
    CLEAN_EXPIRED_CONSUMEQUEUE = 306  # delete consume queue files that lead nowhere
    GET_CONSUMER_RUNNING_INFO = 307  # inside of one consumer; the broker passes it on
    QUERY_CORRECTION_OFFSET = 308  # smallest offset among groups
    CONSUME_MESSAGE_DIRECTLY = 309  # make one consumer consume one message now
    SEND_MESSAGE_V2 = 310  # store a message; one-letter field names
    GET_UNIT_TOPIC_LIST = 311  # topics with the unit flag
    GET_HAS_UNIT_SUB_TOPIC_LIST = 312  # topics with the unit-subscription flag
    GET_HAS_UNIT_SUB_UNUNIT_TOPIC_LIST = 313  # those of them without the unit flag
    CLONE_GROUP_OFFSET = 314  # give one group the offsets of another
    VIEW_BROKER_STATS_DATA = 315  # one statistic by minute, hour and day
    CLEAN_UNUSED_TOPIC = 316  # delete consume queues of topics that are gone
    GET_BROKER_CONSUME_STATS = 317  # how far every group of a broker is behind
    UPDATE_NAMESRV_CONFIG = 318  # change settings of a running name server
    GET_NAMESRV_CONFIG = 319  # read the settings of a name server
    SEND_BATCH_MESSAGE = 320  # store several messages; one-letter field names
    QUERY_CONSUME_QUEUE = 321  # raw consume queue entries
    QUERY_DATA_VERSION = 322  # BR to NS: do you know my latest topics?
    RESUME_CHECK_HALF_MESSAGE = 323  # ask again about a half message
    SEND_REPLY_MESSAGE = 324  # answer of a request-reply; long field names
    SEND_REPLY_MESSAGE_V2 = 325  # answer of a request-reply; one-letter field names
    PUSH_REPLY_MESSAGE_TO_CLIENT = 326  # BR to requester: here is your answer
    ADD_WRITE_PERM_OF_BROKER = 327  # NS: route sends to a broker again
    GET_ALL_PRODUCER_INFO = 328  # every producer of a broker
    DELETE_EXPIRED_COMMITLOG = 329  # delete commit log files past their time
    QUERY_TOPICS_BY_CONSUMER = 343  # topics a group consumes; 5.x
    QUERY_SUBSCRIPTION_BY_CONSUMER = 345  # a group's subscription of a topic; 5.x
    GET_TOPIC_CONFIG = 351  # settings of one topic; 5.x
    GET_SUBSCRIPTIONGROUP_CONFIG = 352  # settings of one group; 5.x
    UPDATE_AND_GET_GROUP_FORBIDDEN = 353  # forbid a group to read a topic; 5.x
    CHECK_ROCKSDB_CQ_WRITE_PROGRESS = 354  # compare two kinds of consume queue; 5.x
    EXPORT_ROCKSDB_CONFIG_TO_JSON = 355  # write settings as JSON files; 5.x
    LITE_PULL_MESSAGE = 361  # as PULL_MESSAGE, from a lite pull consumer; 5.x
    RECALL_MESSAGE = 370  # take a timer message back; 5.x

    # Pop mode, 5.x
    QUERY_ASSIGNMENT = 400  # which queues, and pull or pop?
    SET_MESSAGE_REQUEST_MODE = 401  # pull or pop for a group and topic
    GET_ALL_MESSAGE_REQUEST_MODE = 402  # slave copies the above
    UPDATE_AND_CREATE_STATIC_TOPIC = 513  # topic with logical queues

    # Broker groups, 5.x
    GET_BROKER_MEMBER_GROUP = 901  # addresses of a broker group
    ADD_BROKER = 902  # start a broker in a container
    REMOVE_BROKER = 903  # stop a broker in a container
    BROKER_HEARTBEAT = 904  # BR to NS or controller: alive
    NOTIFY_MIN_BROKER_ID_CHANGE = 905  # NS to BR: who acts as master now
    EXCHANGE_BROKER_HA_INFO = 906  # slave and master exchange replication addresses
    GET_BROKER_HA_STATUS = 907  # state of replication
    RESET_MASTER_FLUSH_OFFSET = 908  # how far a slave may count the log as flushed

    # Controller, 5.x
    CONTROLLER_ALTER_SYNC_STATE_SET = 1001  # master changes the set of in-sync replicas
    CONTROLLER_ELECT_MASTER = 1002  # choose a master
    CONTROLLER_REGISTER_BROKER = 1003  # a replica says that it is up
    CONTROLLER_GET_REPLICA_INFO = 1004  # who is master of a broker group
    CONTROLLER_GET_METADATA_INFO = 1005  # who leads the controllers
    CONTROLLER_GET_SYNC_STATE_DATA = 1006  # in-sync replicas of broker groups
    GET_BROKER_EPOCH_CACHE = 1007  # to BR: epochs of its log
    NOTIFY_BROKER_ROLE_CHANGED = 1008  # to BR: there is a new master
    UPDATE_CONTROLLER_CONFIG = 1009  # change settings of a controller
    GET_CONTROLLER_CONFIG = 1010  # read the settings of a controller
    CLEAN_BROKER_DATA = 1011  # forget a broker
    CONTROLLER_GET_NEXT_BROKER_ID = 1012  # the next free broker id
    CONTROLLER_APPLY_BROKER_ID = 1013  # take a broker id
    BROKER_CLOSE_CHANNEL_REQUEST = 1014  # between controllers: a connection closed
    CHECK_NOT_ACTIVE_BROKER_REQUEST = 1015  # between controllers: look for silent brokers
    GET_BROKER_LIVE_INFO_REQUEST = 1016  # between controllers: who is alive
    GET_SYNC_STATE_DATA_REQUEST = 1017  # between controllers: in-sync replicas
    RAFT_BROKER_HEART_BEAT_EVENT_REQUEST = 1018  # between controllers: a broker is alive

    # Cold data, 5.x
    UPDATE_COLD_DATA_FLOW_CTR_CONFIG = 2001  # limit a group's cold reads
    REMOVE_COLD_DATA_FLOW_CTR_CONFIG = 2002  # lift the limit
    GET_COLD_DATA_FLOW_CTR_INFO = 2003  # limits and use
    SET_COMMITLOG_READ_MODE = 2004  # read-ahead of commit log files

    # Users and policies, 5.x
    AUTH_CREATE_USER = 3001  # create a user
    AUTH_UPDATE_USER = 3002  # change a user
    AUTH_DELETE_USER = 3003  # delete a user
    AUTH_GET_USER = 3004  # read a user
    AUTH_LIST_USER = 3005  # list users
    AUTH_CREATE_ACL = 3006  # create the policies of a subject
    AUTH_UPDATE_ACL = 3007  # change them
    AUTH_DELETE_ACL = 3008  # delete them
    AUTH_GET_ACL = 3009  # read them
    AUTH_LIST_ACL = 3010  # list policies
    SWITCH_TIMER_ENGINE = 5001  # choose the store of timer messages; 5.5

    # Pop mode, 5.x; these do not fit the 16 bits of a binary header (see `header_codec`)
    POP_MESSAGE = 200050  # take messages for a while
    ACK_MESSAGE = 200051  # one of them is consumed
    PEEK_MESSAGE = 200052  # look without taking
    CHANGE_MESSAGE_INVISIBLETIME = 200053  # keep one longer, or give it back
    NOTIFICATION = 200054  # is there anything to pop?
    POLLING_INFO = 200055  # how many pops wait on a queue
    POP_ROLLBACK = 200056  # write open pops where older brokers find them
    POP_LITE = 200070  # LITE family, 5.5: pop from light topics
    LITE_SUBSCRIPTION_CTL = 200071  # change light subscriptions
    ACK_LITE = 200072  # a light message is consumed
    NOTIFY_UNSUBSCRIBE_LITE = 200073  # BR to consumer: light subscription ended
    GET_BROKER_LITE_INFO = 200074  # light topics of a broker
    GET_PARENT_TOPIC_INFO = 200075  # light topics under a topic
    GET_LITE_TOPIC_INFO = 200076  # one light topic
    GET_LITE_CLIENT_INFO = 200077  # light subscriptions of a client
    GET_LITE_GROUP_INFO = 200078  # light subscriptions of a group
    TRIGGER_LITE_DISPATCH = 200079  # deliver light messages now
    BATCH_ACK_MESSAGE = 200151  # several messages are consumed


class ResponseCode(IntEnum):
    """How a request ended. Names that 4.9 and 5.x give to one number are aliases."""

    SUCCESS = 0  # done
    SYSTEM_ERROR = 1  # unexpected failure; also "not found" of many admin requests
    SYSTEM_BUSY = 2  # overload
    REQUEST_CODE_NOT_SUPPORTED = 3  # unknown request code
    TRANSACTION_FAILED = 4  # defined, not sent
    FLUSH_DISK_TIMEOUT = 10  # stored, but not flushed in time
    SLAVE_NOT_AVAILABLE = 11  # stored, but no slave; or a request that a slave cannot do
    FLUSH_SLAVE_TIMEOUT = 12  # stored, but not replicated in time
    MESSAGE_ILLEGAL = 13  # a message that breaks a rule: size, properties, batch, timer
    SERVICE_NOT_AVAILABLE = 14  # the store takes no writes
    VERSION_NOT_SUPPORTED = 15  # defined, not sent
    NO_PERMISSION = 16  # forbidden by permission bits, by name or by policy
    TOPIC_NOT_EXIST = 17  # no such topic
    TOPIC_EXIST_ALREADY = 18  # defined, not sent
    PULL_NOT_FOUND = 19  # nothing new in the queue
    PULL_RETRY_IMMEDIATELY = 20  # nothing matched; go on from nextBeginOffset
    PULL_OFFSET_MOVED = 21  # no such offset; take nextBeginOffset instead
    QUERY_NOT_FOUND = 22  # value, offset or message not found
    SUBSCRIPTION_PARSE_FAILED = 23  # the filter expression is wrong
    SUBSCRIPTION_NOT_EXIST = 24  # the group is offline, or has not subscribed to the topic
    SUBSCRIPTION_NOT_LATEST = 25  # the broker has not seen the newest subscription yet
    SUBSCRIPTION_GROUP_NOT_EXIST = 26  # no such consumer group
    FILTER_DATA_NOT_EXIST = 27  # SQL92: no compiled filter
    FILTER_DATA_NOT_LATEST = 28  # SQL92: the compiled filter is too old
    INVALID_PARAMETER = 29  # 5.x; 4.9 says SYSTEM_ERROR
    TRANSACTION_SHOULD_COMMIT = 200  # not used any more
    TRANSACTION_SHOULD_ROLLBACK = 201  # not used any more
    TRANSACTION_STATE_UNKNOW = 202  # not used any more
    TRANSACTION_STATE_GROUP_WRONG = 203  # not used any more
    NO_BUYER_ID = 204  # unit hooks
    NOT_IN_CURRENT_UNIT = 205  # unit hooks
    CONSUMER_NOT_ONLINE = 206  # nobody of the group is connected
    CONSUME_MSG_TIMEOUT = 207  # the client did not answer 307 or 309
    NO_MESSAGE = 208  # acknowledged offset out of range; query found nothing
    POLLING_FULL = 209  # 5.x: too many pops wait
    UPDATE_AND_CREATE_ACL_CONFIG_FAILED = 209  # 4.9
    POLLING_TIMEOUT = 210  # 5.x: a pop waited in vain
    DELETE_ACL_CONFIG_FAILED = 210  # 4.9
    BROKER_NOT_EXIST = 211  # 5.x
    UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED = 211  # 4.9
    BROKER_DISPATCH_NOT_COMPLETE = 212  # 5.x: consume queues are behind the log
    BROADCAST_CONSUMPTION = 213  # 5.x: not for broadcasting groups
    FLOW_CONTROL = 215  # pull a little later
    NOT_LEADER_FOR_QUEUE = 501  # 5.x: a logical queue lives elsewhere
    ILLEGAL_OPERATION = 604  # 5.x: too late, or a bad recall handle
    GO_AWAY = 1500  # 5.x: shutting down; connect again
    CONTROLLER_FENCED_MASTER_EPOCH = 2000  # the asker's master epoch is old
    CONTROLLER_FENCED_SYNC_STATE_SET_EPOCH = 2001  # the asker's in-sync set is old
    CONTROLLER_INVALID_MASTER = 2002  # the asker is not the master
    CONTROLLER_INVALID_REPLICAS = 2003  # replicas that are not known
    CONTROLLER_MASTER_NOT_AVAILABLE = 2004  # no replica can be master
    CONTROLLER_INVALID_REQUEST = 2005  # fields do not make sense
    CONTROLLER_BROKER_NOT_ALIVE = 2006  # that broker is silent
    CONTROLLER_NOT_LEADER = 2007  # ask the leading controller
    CONTROLLER_BROKER_METADATA_NOT_EXIST = 2008  # broker not known
    CONTROLLER_INVALID_CLEAN_BROKER_METADATA = 2009  # that broker cannot be forgotten
    CONTROLLER_BROKER_NEED_TO_BE_REGISTERED = 2010  # register first
    CONTROLLER_MASTER_STILL_EXIST = 2011  # there is a master already
    CONTROLLER_ELECT_MASTER_FAILED = 2012  # election failed
    CONTROLLER_ALTER_SYNC_STATE_SET_FAILED = 2013  # in-sync set not changed
    CONTROLLER_BROKER_ID_INVALID = 2014  # broker id taken or not applied for
    CONTROLLER_JRAFT_INTERNAL_ERROR = 2015  # the controllers cannot agree
    CONTROLLER_BROKER_LIVE_INFO_NOT_EXISTS = 2016  # nothing known about that broker
    LMQ_QUOTA_EXCEEDED = 2017  # 5.5: too many light queues
    LITE_SUBSCRIPTION_QUOTA_EXCEEDED = 2018  # 5.5: too many light subscriptions
    USER_NOT_EXIST = 3001  # 5.x
    POLICY_NOT_EXIST = 3002  # 5.x
    RPC_UNKNOWN = -1000  # 5.x, between brokers: failed
    RPC_ADDR_IS_NULL = -1002  # 5.x, between brokers: address not known
    RPC_SEND_TO_CHANNEL_FAILED = -1004  # 5.x, between brokers: could not send
    RPC_TIME_OUT = -1006  # 5.x, between brokers: no answer


class LanguageCode(IntEnum):
    """What a peer is written in, by its own account."""

    JAVA = 0
    CPP = 1
    DOTNET = 2
    PYTHON = 3
    DELPHI = 4
    ERLANG = 5
    RUBY = 6
    OTHER = 7
    HTTP = 8
    GO = 9
    PHP = 10
    OMS = 11
    RUST = 12
    NODE_JS = 13


class Version(IntEnum):
    """Ordinals of Apache RocketMQ releases that matter to a peer; each patch level counts 2."""

    V3_0_7_SNAPSHOT = 28  # older clients are not told to reset offsets
    V3_0_11 = 37  # REGISTER_BROKER has today's body from here on
    V3_1_8_SNAPSHOT = 62  # older clients cannot answer 307 and 309
    V3_4_9 = 121  # maxReconsumeTimes counts from here on; what ali-ons says it is
    V4_1_0_SNAPSHOT = 232  # Java clients want this of a broker before they use SQL92
    V4_5_2 = 317  # what the Go client says it is
    V4_6_0 = 333  # what the C++ client says it is
    V4_9_3 = 399  # up to here a signature leaves out _UNIQUE_KEY_QUERY
    V4_9_4 = 401  # routes are standard JSON from here on
    V4_9_7 = 407
    V4_9_8 = 409
    V5_0_0 = 413  # the compressed register body has a mapping section from here on
    V5_1_0 = 433
    V5_2_0 = 453
    V5_3_0 = 473
    V5_3_1 = 475  # later clients understand GO_AWAY
    V5_4_0 = 493
    V5_5_0 = 513
    HIGHER_VERSION = 612  # the last ordinal there is


SPOKEN_VERSION: Final = Version.V4_9_7
"""What gantrymq says it is unless told otherwise: the least that every client is content with."""
