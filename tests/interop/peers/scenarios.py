"""What a client and a broker do together, told once for all clients.

A scenario takes a `World` (one client program, one server) and asserts what a user would notice.
`SCENARIOS` says what a client must have for each; `test_peers.py` runs all of a client at once.
"""

from __future__ import annotations

import hashlib
import json
import struct
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gantrymq.wire.codes import RequestCode
from gantrymq.wire.headers.namesrv import GetRouteInfoRequest
from gantrymq.wire.headers.topic import CreateTopicRequest
from support.peers import PeerError
from support.remoting import RemotingClient

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from support.peers import Message, Peer

QUEUES: Final = 4
RECEIVE_SECONDS_MAX: Final = 70
"""A client may look for a new retry topic every 30 s, and share queues every 20 s."""
ROUTE_SECONDS_MAX: Final = 40
QUIET_SECONDS: Final = 1.5
"""How long one waits for what must not come."""

SETTINGS: Final = {
    "enablePropertyFilter": "true",
    # Level 3, of the first retry, is short, and so is the next.
    "messageDelayLevel": "1s 2s 3s 3s 4s",
    "transactionTimeOut": "1000",
    "transactionCheckInterval": "1000",
    "recallMessageEnable": "true",
}
"""What a broker is given for these scenarios, Apache's or ours."""
LEVEL_SECONDS: Final = {1: 1, 2: 2, 3: 3}
RETRY_SECONDS: Final = 3
LATE_SECONDS_MAX: Final = 1.0


class Consumer(NamedTuple):
    """A consumer that a program runs."""

    peer: Peer
    name: str

    def received(self) -> list[Message]:
        """Return what it has got so far."""
        return self.peer.received(self.name)

    def bodies(self) -> list[str]:
        """Return the bodies of it."""
        return [message["body"] for message in self.received()]

    def stop(self) -> None:
        """Let it leave its group."""
        self.peer.call("stop", name=self.name)


class World:
    """One client program, one server, and names of its own for one scenario."""

    def __init__(self, peer: Peer, name_server: str, port: int, name: str) -> None:
        self.peer = peer
        self._name_server = name_server
        self.port = port
        self._name = name
        self._numbers = count(1)

    def new_name(self, what: str) -> str:
        """Return a name that nobody else has."""
        return f"{self._name}-{what}-{next(self._numbers)}"

    def topic(self, queues: int = QUEUES) -> str:
        """Make a topic; return its name."""
        name = self.new_name("topic")
        header = CreateTopicRequest(
            topic=name, default_topic="TBW102", read_queue_nums=queues, write_queue_nums=queues,
            perm=6, topic_filter_type="SINGLE_TAG", order=False, topic_sys_flag=0,
        )  # fmt: skip
        with self.raw() as client:
            client.want(RequestCode.UPDATE_AND_CREATE_TOPIC, header)
        self.wait_for_route(name)
        return name

    def wait_for_route(self, topic: str) -> None:
        """Wait until the name server knows a topic: a broker tells it by and by."""
        host, _, port = self._name_server.rpartition(":")
        route = GetRouteInfoRequest(topic=topic)
        deadline = time.monotonic() + ROUTE_SECONDS_MAX
        with RemotingClient(host, int(port)) as client:
            while client.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, route).code != 0:
                assert time.monotonic() < deadline, "the name server is not told of a new topic"
                time.sleep(0.02)

    def raw(self) -> RemotingClient:
        """Return a connection to the broker."""
        return RemotingClient("127.0.0.1", self.port)

    def producer(self) -> str:
        """Start a producer; return its name."""
        name = self.new_name("producer")
        self.peer.call("producer", name=name, group=name)
        return name

    def send(
        self, topic: str, messages: Sequence[Message], how: str = "sync", producer: str = ""
    ) -> list[dict[str, Any]]:
        """Send messages, with a producer of their own if none is given; all must be stored."""
        sender = producer or self.producer()
        sent = self.peer.call("send", producer=sender, topic=topic, how=how, messages=messages)
        results: list[dict[str, Any]] = sent or []
        assert [one["status"] for one in results] == ["SEND_OK"] * len(results)
        return results

    def consumer(self, topic: str, group: str = "", **fields: object) -> Consumer:
        """Start a consumer, of everything unless a tag or SQL is given."""
        name = self.new_name("consumer")
        if "sql" not in fields:
            fields.setdefault("tag", "*")
        group = group or self.new_name("group")
        self.peer.call("consumer", name=name, group=group, topic=topic, **fields)
        return Consumer(self.peer, name)

    def wait(self, condition: Callable[[], bool], seconds: float = RECEIVE_SECONDS_MAX) -> bool:
        """Wait for something that messages bring about; say whether it came."""
        return self.peer.wait(condition, seconds)

    def all_of(self, consumer: Consumer, bodies: Iterable[str]) -> list[Message]:
        """Wait until a consumer has these bodies, each once and no other; return its messages."""
        wanted = sorted(bodies)
        self.wait(lambda: len(consumer.received()) >= len(wanted))
        assert sorted(consumer.bodies()) == wanted
        return consumer.received()

    def nothing_else(self, consumer: Consumer, bodies: Iterable[str]) -> None:
        """Be sure that a consumer gets no more than these."""
        wanted = sorted(bodies)
        time.sleep(QUIET_SECONDS)
        assert sorted(consumer.bodies()) == wanted


def texts(number: int, start: str = "text") -> list[str]:
    """Return bodies that are told apart, with more than ASCII."""
    return [f"{start} {place} é 消息" for place in range(number)]


# -- producing -----------------------------------------------------------------------------------


def _round_trip(world: World, how: str) -> None:
    topic = world.topic()
    consumer = world.consumer(topic, show=["shape"])
    bodies = texts(20)
    messages = [
        {"body": body, "tag": "red", "keys": f"key-{place}", "properties": {"shape": f"s{place}"}}
        for place, body in enumerate(bodies)
    ]
    sent = world.send(topic, messages, how)
    got = {message["body"]: message for message in world.all_of(consumer, bodies)}
    for place, body in enumerate(bodies):
        message = got[body]
        assert (message["topic"], message["tag"]) == (topic, "red")
        assert message["keys"].strip() == f"key-{place}"
        assert message["properties"]["shape"] == f"s{place}"
        assert message["times"] == 0
        if how in {"sync", "async"}:
            assert message["offset"] == sent[place]["offset"]
    if how != "oneway":
        assert len(sent) == len(bodies)
    with world.raw() as client:
        assert sum(client.max_offset(topic, queue) for queue in range(QUEUES)) == len(bodies)


def sync_send(world: World) -> None:
    """What is sent one by one is received as it was."""
    _round_trip(world, "sync")


def async_send(world: World) -> None:
    """Every callback is called once, with the place that the message has."""
    _round_trip(world, "async")


def oneway_send(world: World) -> None:
    """What nobody waits for arrives too."""
    _round_trip(world, "oneway")


def chosen_queue(world: World) -> None:
    """Sync, async and one way, to a queue and with a selector: each is where it was sent to."""
    topic = world.topic()
    for how in ("sync", "async", "oneway"):
        world.send(topic, [{"body": f"{how} queue", "queue": 2}], how)
        world.send(topic, [{"body": f"{how} shard", "shard": "one"}], how)
    consumer = world.consumer(topic)
    bodies = [f"{how} {by}" for how in ("sync", "async", "oneway") for by in ("queue", "shard")]
    queues = defaultdict(set)
    for message in world.all_of(consumer, bodies):
        queues[message["body"].split()[1]].add(message["queue"])
    assert queues["queue"] == {2}
    assert len(queues["shard"]) == 1


def filled_in(world: World) -> None:
    """What a broker adds to a message: cluster, hosts, times, and how often it came again."""
    topic = world.topic()
    consumer = world.consumer(topic, failures=1)
    before = time.time_ns() // 1_000_000
    (sent,) = world.send(topic, [{"body": "once more"}])

    def viewed(message: Message, id_of: str) -> Message:
        found: Message
        (found,) = world.peer.call(
            "query", topic=message["topic"], name=world.new_name("admin"), message=id_of
        )
        assert (found["body"], found["key"]) == ("once more", sent["key"])
        assert found["properties"]["CLUSTER"] == "DefaultCluster"
        born, stored = found["born_at"], found["stored_at"]
        assert born.startswith("/127.0.0.1:")
        assert not born.endswith((":0", f":{world.port}")), "the client's port"
        assert stored == f"/127.0.0.1:{world.port}"
        assert before <= found["born"] <= found["stored"] <= time.time_ns() // 1_000_000
        return found

    assert world.wait(lambda: len(consumer.received()) == 2)
    first, second = consumer.received()
    one = viewed(first, sent["place"])
    assert one["times"] == 0
    two = viewed(second, _place_id(world.port, second["log_offset"]))
    assert two["times"] == 1
    assert two["born"] == one["born"], "it was born once, and is stored twice"
    assert two["stored"] >= one["stored"] + RETRY_SECONDS * 1000


def _place_id(port: int, log_offset: int) -> str:
    """Return a message id that says where in the log of the broker it is."""
    return (bytes((127, 0, 0, 1)) + struct.pack(">iq", port, log_offset)).hex().upper()


def unknown_topic(world: World) -> None:
    """The first message to a topic that nobody made makes it."""
    topic = world.new_name("topic")
    world.send(topic, [{"body": "first"}])
    world.wait_for_route(topic)
    world.all_of(world.consumer(topic), ["first"])


def batch(world: World) -> None:
    """A batch is stored in one queue, one after the other."""
    topic = world.topic()
    bodies = texts(10)
    (sent,) = world.send(topic, [{"body": body, "tag": "t"} for body in bodies], "batch")
    got = world.all_of(world.consumer(topic), bodies)
    assert len({message["queue"] for message in got}) == 1
    got.sort(key=lambda message: message["offset"])
    assert [message["body"] for message in got] == bodies
    assert [message["offset"] for message in got] == list(range(10))
    assert sent["offset"] == 0


def compressed(world: World) -> None:
    """Bodies over 4 KiB, which clients compress, come out as they went in."""
    topic = world.topic()
    bodies = [f"{place} " + "long and longer " * size for place, size in enumerate((300, 2000))]
    world.send(topic, [{"body": body} for body in bodies])
    world.all_of(world.consumer(topic), bodies)


def request_reply(world: World) -> None:
    """A request gets its reply; one that nobody answers fails in time."""
    topic, silent = world.topic(), world.topic()
    asking, answering = world.producer(), world.producer()
    # A producer is known to the broker once it has sent, and its heartbeat has come.
    for producer in (asking, answering):
        world.send(silent, [{"body": "here I am"}], producer=producer)
    consumer = world.consumer(topic, reply_as=answering)
    world.send(topic, [{"body": "no question"}])
    world.all_of(consumer, ["no question"])
    time.sleep(QUIET_SECONDS)
    request = {"producer": asking, "topic": topic, "timeout_ms": 20_000}
    for body in ("how much?", "how many?"):
        assert world.peer.call("request", **request, body=body) == f"re: {body}"
    assert consumer.bodies() == ["no question", "how much?", "how many?"]
    start = time.monotonic()
    try:
        world.peer.call("request", producer=asking, topic=silent, timeout_ms=1000, body="anybody?")
    except PeerError as error:
        assert "time" in str(error).lower()  # noqa: PT017  (nothing may come, nor something else)
    else:
        raise AssertionError("a request that nobody answers has an answer")
    assert time.monotonic() - start < 10


# -- consuming -----------------------------------------------------------------------------------


def _shards(number: int) -> list[str]:
    """Return keys that do not fall on queue 0 by MD5.

    The Node client takes "queue 0" for "no queue" and sends such a key anywhere.
    """
    names = (f"order-{place}" for place in count())
    good = (
        name
        for name in names
        if int.from_bytes(hashlib.md5(name.encode(), usedforsecurity=False).digest()[:4]) % QUEUES
    )
    return [next(good) for _ in range(number)]


def _in_order(world: World, members: int) -> None:
    topic = world.topic()
    shards = _shards(5)
    messages = [
        {"body": f"{shard} {step}", "shard": shard} for step in range(12) for shard in shards
    ]
    group = world.new_name("group")
    consumers = [world.consumer(topic, group, orderly=True) for _ in range(members)]
    world.send(topic, messages)

    def got() -> list[Message]:
        return [message for one in consumers for message in one.received()]

    assert world.wait(lambda: len({one["body"] for one in got()}) == len(messages))
    for shard in shards:
        queues = {m["queue"] for m in got() if m["body"].startswith(f"{shard} ")}
        assert len(queues) == 1
    by_queue: dict[tuple[str, int], list[int]] = defaultdict(list)
    for consumer in consumers:
        for message in consumer.received():
            by_queue[consumer.name, message["queue"]].append(message["offset"])
    for offsets in by_queue.values():
        assert offsets == sorted(offsets)
    assert len(got()) == len(messages)


def order(world: World) -> None:
    """One key has one queue, and a queue's messages are stored in the order of sending."""
    topic = world.topic()
    shards = _shards(5)
    bodies = [f"{shard} {step}" for step in range(12) for shard in shards]
    world.send(topic, [{"body": body, "shard": body.split()[0]} for body in bodies])
    got = world.all_of(world.consumer(topic), bodies)
    got.sort(key=lambda message: message["offset"])
    for shard in shards:
        own = [message for message in got if message["body"].startswith(f"{shard} ")]
        assert len({message["queue"] for message in own}) == 1
        assert [message["body"] for message in own] == [f"{shard} {step}" for step in range(12)]


def orderly(world: World) -> None:
    """A member that locks its queues: each message once, and in order."""
    _in_order(world, 1)


def orderly_together(world: World) -> None:
    """Two members: one gives up the locks of the queues that the other is to have.

    The Go client does not: its locks run out after a minute.
    """
    _in_order(world, 2)


def broadcast(world: World) -> None:
    """Every member gets every message; tags hold for each."""
    topic = world.topic()
    group = world.new_name("group")
    members = [world.consumer(topic, group, broadcast=True, tag="red") for _ in range(3)]
    time.sleep(QUIET_SECONDS)
    bodies = texts(20)
    world.send(topic, [{"body": body, "tag": "red"} for body in bodies])
    world.send(topic, [{"body": "not for them", "tag": "blue"}])
    for member in members:
        world.all_of(member, bodies)


def tag_filter(world: World) -> None:
    """One tag, several, and two whose hashes are equal: groups with different ones at once."""
    topic = world.topic()
    wanted = {
        "red": {"red"},
        "red || blue": {"red", "blue"},
        "AaAa": {"AaAa"},
        "*": {"red", "blue", "AaAa", "BBBB"},
    }
    groups = {tag: world.consumer(topic, tag=tag) for tag in wanted}
    tags = ["red", "blue", "AaAa", "BBBB"]
    messages = [{"body": f"{tag} {place}", "tag": tag} for place in range(8) for tag in tags]
    world.send(topic, messages)
    for tag, consumer in groups.items():
        world.all_of(consumer, [one["body"] for one in messages if one["tag"] in wanted[tag]])
    time.sleep(QUIET_SECONDS)
    for tag, consumer in groups.items():
        assert {body.split()[0] for body in consumer.bodies()} == wanted[tag]


def sql_filter(world: World) -> None:
    """Numbers, strings, sets and missing properties, by SQL; a bad expression is refused."""
    topic = world.topic()
    wanted: dict[str, Callable[[int], bool]] = {
        "size > 3 AND size <= 7": lambda n: 3 < n <= 7,
        "shape = 'round' AND size BETWEEN 2 AND 5": lambda n: n % 2 == 0 and 2 <= n <= 5,
        "size IN ('1', '9') OR shape IS NULL": lambda n: n in {1, 9} or n % 2 == 1,
        "NOT (size < 8) AND shape <> 'square'": lambda n: n >= 8 and n % 2 == 0,
    }
    consumers = {sql: world.consumer(topic, sql=sql) for sql in wanted}
    messages = [
        {"body": str(n), "properties": {"size": str(n)} | ({} if n % 2 else {"shape": "round"})}
        for n in range(10)
    ]
    world.send(topic, messages)
    for sql, consumer in consumers.items():
        world.all_of(consumer, [str(n) for n in range(10) if wanted[sql](n)])


def bad_sql(world: World) -> None:
    """A consumer with an expression that cannot be parsed does not start."""
    topic = world.topic()
    try:
        world.consumer(topic, sql="size >")
    except PeerError as error:
        assert "23" in str(error)  # noqa: PT017  (SUBSCRIPTION_PARSE_FAILED)
    else:
        raise AssertionError("a consumer with bad SQL has started")


class Sharing:
    """A group whose members come and go while messages flow."""

    def __init__(self, world: World, queues: int, messages: int = 0) -> None:
        self._world = world
        self._queues = queues
        self._messages = messages or 10 * queues
        """Of the round in which nothing comes twice."""
        self._producer = world.producer()
        self._numbers = count()
        self.topic = world.topic(queues)
        self.group = world.new_name("group")
        self.members: list[Consumer] = []
        self.gone: list[Consumer] = []

    def settle(self) -> None:
        """Wait until members share the queues evenly; then each message comes once."""
        share = self._queues // len(self.members)
        deadline = time.monotonic() + RECEIVE_SECONDS_MAX
        while self._round(self._queues) != Counter({one.name: share for one in self.members}):
            assert time.monotonic() < deadline, "members do not share the queues evenly"
            time.sleep(0.2)
        even = Counter({one.name: self._messages // len(self.members) for one in self.members})
        assert self._round(self._messages) == even

    def _round(self, size: int) -> Counter[str]:
        """Send to all queues alike; return how many each member got, when all have come."""
        bodies = {f"round {next(self._numbers)}" for _ in range(size)}
        messages = [{"body": body} for body in sorted(bodies)]
        self._world.send(self.topic, messages, producer=self._producer)
        everybody = [*self.members, *self.gone]
        assert self._world.wait(
            lambda: bodies <= {body for one in everybody for body in one.bodies()}
        ), "messages are missing after members changed"
        return Counter(one.name for one in everybody for body in one.bodies() if body in bodies)


def rebalance(world: World) -> None:
    """Members join and leave: no message is missing, and the spread is even."""
    sharing = Sharing(world, queues=6)
    sharing.members.append(world.consumer(sharing.topic, sharing.group))
    sharing.settle()
    sharing.members += [world.consumer(sharing.topic, sharing.group) for _ in range(2)]
    sharing.settle()
    time.sleep(QUIET_SECONDS)
    left = sharing.members.pop()
    sharing.gone.append(left)
    left.stop()
    sharing.settle()


def four_members(world: World) -> None:
    """Four share 240 messages; two stop and two join: each message comes once, to all alike."""
    sharing = Sharing(world, queues=8, messages=240)
    sharing.members += [world.consumer(sharing.topic, sharing.group) for _ in range(4)]
    sharing.settle()
    for _ in range(2):
        left = sharing.members.pop(0)
        left.stop()
        sharing.gone.append(left)
    sharing.members += [world.consumer(sharing.topic, sharing.group) for _ in range(2)]
    sharing.settle()


def young_topic(world: World) -> None:
    """A new group gets what is still in memory of a topic, wherever it wants to begin.

    That is Apache's rule: an offset that a group does not have is 0 where offset 0 is in memory.
    """
    topic = world.topic()
    world.send(topic, [{"body": body} for body in texts(8)])
    moment = time.time_ns() // 1_000_000 + 60_000
    for begin in ("first", "last", "timestamp"):
        world.all_of(world.consumer(topic, **{"from": begin}, moment=moment), texts(8))


def resumes(world: World) -> None:
    """A group that comes back goes on where it stopped; one that was away misses nothing."""
    topic = world.topic()
    group = world.new_name("group")
    world.send(topic, [{"body": body} for body in texts(8, "one")])
    first = world.consumer(topic, group)
    world.all_of(first, texts(8, "one"))
    # A Go client that stops in its first second may leave a heartbeat behind, and stays a member.
    world.nothing_else(first, texts(8, "one"))
    first.stop()
    world.send(topic, [{"body": body} for body in texts(8, "two")])
    second = world.consumer(topic, group)
    world.all_of(second, texts(8, "two"))
    world.nothing_else(second, texts(8, "two"))


def lite_pull(world: World) -> None:
    """The consumer that the application asks gets all, by tag, and commits what it got."""
    topic = world.topic()
    bodies = texts(12)
    world.send(topic, [{"body": body, "tag": "t"} for body in bodies])
    world.send(topic, [{"body": "other", "tag": "u"}])
    asked = {"topic": topic, "group": world.new_name("group"), "tag": "t"}
    got = world.peer.call("lite", **asked, name=world.new_name("lite"), count=len(bodies))
    assert sorted(message["body"] for message in got) == sorted(bodies)
    world.send(topic, [{"body": "after", "tag": "t"}])
    again = world.peer.call("lite", **asked, name=world.new_name("lite"), count=1)
    assert [message["body"] for message in again] == ["after"]


def pull(world: World) -> None:
    """The oldest consumer reads each queue from an offset, and is told its ends and its moments."""
    topic = world.topic()

    producer = world.producer()

    def send(*numbers: int) -> None:
        messages = [
            {"body": f"{queue}/{n}", "tag": "t", "queue": queue}
            for queue in range(QUEUES)
            for n in numbers
        ]
        world.send(topic, messages, producer=producer)

    send(0, 1, 2)
    # 4.9 takes the message that is nearest to a moment, 5.x the first after it.
    time.sleep(0.5)
    moment = time.time_ns() // 1_000_000
    time.sleep(0.02)
    send(3, 4)
    asked = {"topic": topic, "group": world.new_name("group"), "tag": "t", "moment": moment}
    found = world.peer.call("pull", **asked, name=world.new_name("pull"), offset=2)
    assert len(found) == QUEUES
    for queue, told in enumerate(found):
        assert (told["min"], told["max"], told["at"]) == (0, 5, 3)
        assert [message["body"] for message in told["found"]] == [f"{queue}/{n}" for n in (2, 3, 4)]
    none = asked | {"moment": 1, "tag": "none"}
    before = world.peer.call("pull", **none, name=world.new_name("pull"), offset=0)
    assert [(told["at"], told["found"]) for told in before] == [(0, [])] * QUEUES


def pull_forms(world: World) -> None:
    """At once, held or called back; by tag; from every offset, and from some that are not there."""
    topic = world.topic(1)
    producer = world.producer()
    tags = ["a", "b", "a", "b", "b"]
    bodies = [f"{tag} {place}" for place, tag in enumerate(tags)]
    messages = [{"body": body, "tag": body[0]} for body in bodies]
    world.send(topic, messages, producer=producer)
    group = world.new_name("group")

    def pulled(how: str, offset: int, tag: str = "*") -> tuple[str, int, list[str]]:
        told = world.peer.call(
            "pull_one", name=world.new_name("pull"), group=group, topic=topic, queue=0, how=how,
            offset=offset, tag=tag,
        )  # fmt: skip
        assert (told["min"], told["max"]) == (0, len(bodies))
        return told["status"], told["next"], [message["body"] for message in told["found"]]

    for how in ("sync", "async", "block", "block_async"):
        for offset in range(len(bodies)):
            assert pulled(how, offset) == ("FOUND", 5, bodies[offset:]), (how, offset)
        assert pulled(how, 0, "a") == ("FOUND", 5, ["a 0", "a 2"])
        assert pulled(how, 1, "a || b") == ("FOUND", 5, bodies[1:])
        assert pulled(how, 9) == ("OFFSET_ILLEGAL", 5, [])
    assert pulled("sync", 3, "a") == ("NO_MATCHED_MSG", 5, [])
    assert pulled("sync", 5) == ("NO_NEW_MSG", 5, [])
    assert pulled("async", 5) == ("NO_NEW_MSG", 5, [])
    later = threading.Timer(
        QUIET_SECONDS, world.send, (topic, [{"body": "b late", "tag": "b"}], "sync", producer)
    )
    start = time.monotonic()
    later.start()
    bodies.append("b late")
    assert pulled("block", 5) == ("FOUND", 6, ["b late"])
    assert time.monotonic() - start >= QUIET_SECONDS, "it was not held"
    later.join()


def query(world: World) -> None:
    """A message is found by its keys, by its unique key and by its place in the log."""
    topic = world.topic()
    messages = [
        {"body": "a", "keys": "AaAa"},
        {"body": "b", "keys": "BBBB"},
        {"body": "c", "keys": "AaAa other"},
    ]
    sent = world.send(topic, messages)

    def found(**fields: object) -> list[str]:
        try:
            got = world.peer.call("query", topic=topic, name=world.new_name("admin"), **fields)
        except PeerError:
            return []
        return sorted(message["body"] for message in got)

    # The index follows the log; it need not be there at once.
    world.wait(lambda: len(found(keys="AaAa")) == 2, 10)
    assert found(keys="AaAa") == ["a", "c"]
    assert found(keys="BBBB") == ["b"]
    assert found(keys="nobody") == []
    for message, told in zip(messages, sent, strict=True):
        assert found(message=told["key"]) == [message["body"]]
        assert found(message=told["place"]) == [message["body"]]


# -- delay, retry, transactions --------------------------------------------------------------------


def delay(world: World) -> None:
    """A delayed message comes at its time: never early, and late by little."""
    topic = world.topic()
    consumer = world.consumer(topic)
    world.send(topic, [{"body": "now"}])
    world.all_of(consumer, ["now"])
    bodies = [f"level {level} {n}" for level in LEVEL_SECONDS for n in range(4)]
    world.send(topic, [{"body": body, "delay": int(body.split()[1])} for body in bodies])
    for message in world.all_of(consumer, ["now", *bodies])[1:]:
        waited = (message["received"] - message["born"]) / 1000
        due = LEVEL_SECONDS[int(message["body"].split()[1])]
        assert due <= waited <= due + LATE_SECONDS_MAX, (message["body"], waited)


def retry(world: World) -> None:
    """A message that fails comes again after a while, by itself."""
    topic = world.topic()
    consumer = world.consumer(topic, failures=1)
    bodies = texts(4)
    world.send(topic, [{"body": body} for body in bodies])
    assert world.wait(lambda: len(consumer.received()) >= 2 * len(bodies))
    times: dict[str, list[Message]] = defaultdict(list)
    for message in consumer.received():
        times[message["body"]].append(message)
    assert sorted(times) == sorted(bodies)
    for first, second in times.values():
        assert (first["times"], second["times"]) == (0, 1)
        # When it was stored again; a client may find its retry topic only later.
        waited = (second["stored"] - first["received"]) / 1000
        assert RETRY_SECONDS <= waited <= RETRY_SECONDS + LATE_SECONDS_MAX
    world.nothing_else(consumer, bodies * 2)


def dead_letters(world: World) -> None:
    """What fails again and again ends in the group's dead-letter queue, once."""
    topic = world.topic()
    group = world.new_name("group")
    consumer = world.consumer(topic, group, failures=9, retries=1)
    world.send(topic, [{"body": "bad", "keys": "k"}])
    dead = f"%DLQ%{group}"

    def parked() -> int:
        with world.raw() as client:
            return client.max_offset(dead, 0)

    deadline = time.monotonic() + RECEIVE_SECONDS_MAX
    while (len(consumer.received()) < 2 or parked() < 1) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert [(one["body"], one["times"]) for one in consumer.received()] == [("bad", 0), ("bad", 1)]
    world.nothing_else(consumer, ["bad", "bad"])
    assert parked() == 1
    with world.raw() as client:
        assert b"bad" in client.pull_all(dead, 0)[0]


def orderly_retry(world: World) -> None:
    """In an orderly group a message that fails holds up its queue until it succeeds."""
    topic = world.topic(1)
    consumer = world.consumer(topic, orderly=True, failures=1)
    bodies = texts(4)
    world.send(topic, [{"body": body} for body in bodies])
    assert world.wait(lambda: len(consumer.received()) >= 2 * len(bodies))
    assert consumer.bodies() == [body for body in bodies for _ in range(2)]


def transactions(world: World) -> None:
    """Consumers see what was committed, at once or when the broker asked; nothing else."""
    topic = world.topic()
    consumer = world.consumer(topic)
    decisions = [
        ("commit", "commit"), ("rollback", "rollback"), ("unknown", "commit"),
        ("unknown", "rollback"),
    ]  # fmt: skip
    messages = [
        {"body": f"{decide}, then {check}", "properties": {"decide": decide, "check": check}}
        for decide, check in decisions
    ]
    world.send(topic, messages, "transaction")
    # A broker may ask about the others too, if it is quicker than their producer.
    undecided = {"unknown, then commit", "unknown, then rollback"}
    assert world.wait(lambda: undecided <= set(world.peer.checks()))
    visible = ["commit, then commit", "unknown, then commit"]
    world.all_of(consumer, visible)
    world.nothing_else(consumer, visible)


def pops(world: World) -> None:
    """The broker shares out, members pop and acknowledge; what fails comes again by itself."""
    topic, group = world.topic(), world.new_name("group")
    mode = {"topic": topic, "consumerGroup": group, "mode": "POP", "popShareQueueNum": 0}
    with world.raw() as client:
        client.want(RequestCode.SET_MESSAGE_REQUEST_MODE, None, json.dumps(mode).encode())
    members = [world.consumer(topic, group, pops=True, failures=1) for _ in range(2)]
    bodies = texts(12)
    world.send(topic, [{"body": body} for body in bodies])

    def received() -> list[Message]:
        return [message for one in members for message in one.received()]

    assert world.wait(lambda: len(received()) >= 2 * len(bodies))
    time.sleep(QUIET_SECONDS)
    found = sorted((message["body"], message["times"]) for message in received())
    assert found == sorted((body, times) for body in bodies for times in (0, 1))
    assert all(message["properties"].get("POP_CK") for message in received()), "not pulled"


def assigned(world: World) -> None:
    """Members that ask the broker for their queues share them, and pull where nothing is set."""
    topic, group = world.topic(), world.new_name("group")
    members = [world.consumer(topic, group, pops=True, quick=True) for _ in range(2)]
    bodies = texts(12)
    world.send(topic, [{"body": body} for body in bodies])

    def received() -> list[Message]:
        return [message for one in members for message in one.received()]

    assert world.wait(lambda: len(received()) >= len(bodies))
    time.sleep(QUIET_SECONDS)
    assert sorted({message["body"] for message in received()}) == sorted(bodies)
    assert not any(message["properties"].get("POP_CK") for message in received()), "not popped"


def gathered(world: World) -> None:
    """A producer of 5.x that gathers its sends into batches is told of each by itself."""
    topic, producer = world.topic(), world.new_name("producer")
    world.peer.call("producer", name=producer, group=producer, gathers=True)
    consumer = world.consumer(topic)
    bodies = texts(64)
    sent = world.send(topic, [{"body": body} for body in bodies], "async", producer)
    assert len({(one["queue"], one["offset"]) for one in sent}) == len(bodies)
    found = world.all_of(consumer, bodies)
    assert {one["key"] for one in found} == {one["key"] for one in sent}
    places = {one["key"]: (one["queue"], one["offset"]) for one in sent}
    assert all(places[one["key"]] == (one["queue"], one["offset"]) for one in found)


def timers(world: World) -> None:
    """A message for a second comes in it, and one that is taken back does not."""
    topic, producer = world.topic(), world.producer()
    consumer = world.consumer(topic)
    taken = world.send(topic, [{"body": "taken back", "timer_s": 4}], producer=producer)[0]
    bodies = [f"after {seconds}" for seconds in (1, 2, 5)]
    sent = [{"body": body, "timer_s": int(body.split()[1])} for body in bodies]
    world.send(topic, sent, producer=producer)
    told = world.peer.call("recall", producer=producer, topic=topic, handle=taken["handle"])
    assert told == taken["key"]
    for message in world.all_of(consumer, bodies):
        waited = (message["received"] - message["born"]) / 1000
        due = int(message["body"].split()[1])
        # The second in which it is due is over before it comes.
        assert due <= waited <= due + 1 + LATE_SECONDS_MAX, (message["body"], waited)
    world.nothing_else(consumer, bodies)


def _traced(world: World, kinds: set[str]) -> None:
    """Have a message sent and read by clients that trace, and find what they left of it."""
    topic, producer = world.topic(), world.new_name("producer")
    world.peer.call("producer", name=producer, group=producer, traces=True)
    consumer = world.consumer(topic, traces=True)
    sent = world.send(topic, [{"body": "traced"}], producer=producer)[0]
    world.all_of(consumer, ["traced"])
    asked = {"topic": "RMQ_SYS_TRACE_TOPIC", "keys": sent["key"]}
    deadline = time.monotonic() + RECEIVE_SECONDS_MAX
    seen: set[str] = set()
    while not kinds <= seen:
        assert time.monotonic() < deadline, f"only {seen} of it can be found"
        time.sleep(0.5)
        with suppress(PeerError):  # nothing of it is there yet
            found = world.peer.call("query", **asked, name=world.new_name("admin"))
            records = [record for one in found for record in one["body"].split("\x02")]
            seen = {record.split("\x01")[0] for record in records if sent["key"] in record}


def traces(world: World) -> None:
    """A producer that traces leaves what it did in the trace topic, where its key finds it."""
    _traced(world, {"Pub"})


def traces_of_readers(world: World) -> None:
    """So does a consumer; those of 5.x only where messages have MSG_REGION, as on 5.x brokers."""
    _traced(world, {"Pub", "SubBefore", "SubAfter"})


class Scenario(NamedTuple):
    """A scenario, and what a client must be able to do for it."""

    run: Callable[[World], None]
    needs: str = ""


SCENARIOS: Final = {
    scenario.run.__name__: scenario
    for scenario in (
        Scenario(sync_send),
        Scenario(async_send),
        Scenario(oneway_send, "oneway"),
        Scenario(chosen_queue, "queue"),
        Scenario(filled_in, "query"),
        Scenario(unknown_topic, "creates"),
        Scenario(batch, "batch"),
        Scenario(compressed),
        Scenario(request_reply, "request"),
        Scenario(order),
        Scenario(orderly, "orderly"),
        Scenario(orderly_together, "unlocking"),
        Scenario(orderly_retry, "orderly_retry"),
        Scenario(broadcast),
        Scenario(tag_filter),
        Scenario(sql_filter, "sql"),
        Scenario(bad_sql, "sql_checked"),
        Scenario(rebalance),
        Scenario(four_members, "many"),
        Scenario(young_topic, "from"),
        Scenario(resumes),
        Scenario(lite_pull, "pull"),
        Scenario(pull, "pull"),
        Scenario(pull_forms, "pull"),
        Scenario(query, "query"),
        Scenario(delay),
        Scenario(retry),
        Scenario(dead_letters, "retries"),
        Scenario(transactions, "transactions"),
        Scenario(traces, "traces"),
        Scenario(traces_of_readers, "traces_of_readers"),
        Scenario(pops, "pops"),
        Scenario(assigned, "pops"),
        Scenario(gathered, "gathers"),
        Scenario(timers, "timers"),
    )
}
