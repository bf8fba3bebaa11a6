"""What the micro-benchmarks work on: frames exactly as `bench/mqload.c` makes them, and their log.

Everything is the same on every run: numbers count up, the clock stands still.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gantrymq.kernel.interface import Kernel
    from gantrymq.kernel.lanes import SendLane

TOPIC = b"BenchTopic"
QUEUES = 8
BODY = b"x" * 128
BORN_MS = 1_794_778_260_337
NOW_MS = BORN_MS + 1
STORE_HOST = bytes([127, 0, 0, 1]) + struct.pack(">i", 10911)
BORN_HOST = bytes([127, 0, 0, 1]) + struct.pack(">i", 50000)
DELAYS_MS = (1000, 5000, 10_000)
POLICY_NAMES = (b"DELAY", b"TRAN_MSG", b"TIMER_DELAY_MS", b"INNER_MULTI_DISPATCH", b"POP_CK")
BATCH = 32


def framed(header: bytes, body: bytes, serialize_type: int = 0) -> bytes:
    """Return a whole frame."""
    total = 4 + len(header) + len(body)
    return struct.pack(">iI", total, serialize_type << 24 | len(header)) + header + body


def unique_key(number: int) -> str:
    """Return a message's unique key."""
    return f"7F00000100002A139A55{number:012X}"


def json_send(number: int, code: int, properties: str, body: bytes, batch: str) -> bytes:
    """Return a request as mqload prints it."""
    header = (
        f'{{"code":{code},"extFields":{{"a":"mqload","b":"{TOPIC.decode()}","c":"TBW102",'
        f'"d":"{QUEUES}","e":"{number % QUEUES}","f":"0","g":"{BORN_MS}","h":"0",'
        f'"i":"{properties}","j":"0","k":"false","l":"0","m":"{batch}"}},"flag":0,"language":"JAVA","opaque":{number},'
        f'"serializeTypeCurrentRPC":"JSON","version":399}}'
    )
    return framed(header.encode(), body)


def single_sends(count: int) -> bytes:
    """Return SEND_MESSAGE_V2 requests of 128 bytes with JSON headers."""
    return b"".join(
        json_send(
            n,
            310,
            f"UNIQ_KEY\\u0001{unique_key(n)}\\u0002WAIT\\u0001true\\u0002TAGS\\u0001TagA",
            BODY,
            "false",
        )
        for n in range(1, count + 1)
    )


def binary_sends(count: int) -> bytes:
    """Return the same requests with binary headers."""
    return b"".join(_binary_send(n) for n in range(1, count + 1))


def _binary_send(number: int) -> bytes:
    properties = f"UNIQ_KEY\x01{unique_key(number)}\x02WAIT\x01true\x02TAGS\x01TagA"
    values = [
        "mqload", TOPIC.decode(), "TBW102", QUEUES, number % QUEUES, 0, BORN_MS, 0, properties, 0,
        "false", 0, "false",
    ]  # fmt: skip
    ext = b"".join(
        struct.pack(">h", 1)
        + key.encode()
        + struct.pack(">i", len(str(value)))
        + str(value).encode()
        for key, value in zip("abcdefghijklm", values, strict=True)
    )
    head = struct.pack(">hbhiiii", 310, 0, 399, number, 0, 0, len(ext))
    return framed(head + ext, BODY, 1)


def batch_sends(count: int) -> bytes:
    """Return SEND_BATCH_MESSAGE requests of 32 messages of 128 bytes each."""
    return b"".join(_batch_send(n) for n in range(1, count + 1))


def _batch_send(number: int) -> bytes:
    body = b""
    for n in range(number * BATCH, (number + 1) * BATCH):
        own = f"UNIQ_KEY\x01{unique_key(n)}\x02WAIT\x01true\x02TAGS\x01TagA".encode()
        total = 22 + len(BODY) + len(own)
        body += struct.pack(">iiiii", total, 0, 0, 0, len(BODY)) + BODY
        body += struct.pack(">h", len(own)) + own
    return json_send(number, 320, "WAIT\\u0001true\\u0002", body, "true")


def json_pull(number: int) -> bytes:
    """Return a pull of 32 messages from the front of a queue."""
    header = (
        f'{{"code":11,"extFields":{{"consumerGroup":"mqload","topic":"{TOPIC.decode()}",'
        f'"queueId":"0","queueOffset":"0","maxMsgNums":"{BATCH}","sysFlag":"6",'
        f'"commitOffset":"0","suspendTimeoutMillis":"15000","subscription":"*",'
        f'"subVersion":"0","expressionType":"TAG"}},"flag":0,"language":"JAVA",'
        f'"opaque":{number},"serializeTypeCurrentRPC":"JSON","version":399}}'
    )
    return framed(header.encode(), b"")


def make_lane(kernel: Kernel) -> SendLane:
    """Return a lane with the topic of the benchmark open."""
    lane = kernel.SendLane(
        store_host=STORE_HOST,
        cluster=b"DefaultCluster",
        region=b"DefaultRegion",
        trace_on=True,
        version=407,
        body_bytes_max=4 << 20,
        policy_names=POLICY_NAMES,
    )
    lane.open_topic(TOPIC, [0] * QUEUES)
    return lane


def stored_log(kernel: Kernel, count: int) -> bytes:
    """Return the log of `count` single sends, without a tail."""
    stream = single_sends(count)
    log = bytearray(400 * count + 8)
    run = make_lane(kernel).append(stream, 0, len(stream), log, 0, len(log), 0, BORN_HOST, NOW_MS)
    return bytes(log[: run.log_position])
