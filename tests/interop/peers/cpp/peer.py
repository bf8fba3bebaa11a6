"""The C++ client as a program, through the C interface that its wheel for Python has.

A command in JSON on each line of standard input, answers and what consumers receive as lines of
JSON on standard output; README.md in the folder above has the words. Started as
`peer.py NAME_SERVER FOLDER`, with the folder that tests/support/peers.py has put the wheel into.
It imports nothing of gantrymq.
"""

from __future__ import annotations

import base64
import ctypes
import importlib
import json
import os
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Mapping
from typing import Any

Fields = Mapping[str, Any]

ASYNC_SECONDS_MAX = 30
RETRY_LATER = 1
MESSAGE_BYTES_MAX = 4 << 20
STRING_HEAD = 24
"""A length, a capacity and a count of references stand before the bytes."""


class Peer:
    """What runs: producers and consumers by name."""

    def __init__(self, names: str) -> None:
        self._names = names
        self._client = importlib.import_module("rocketmq.client")
        self._ffi = importlib.import_module("rocketmq.ffi")
        self._ffi_check = importlib.import_module("rocketmq.exceptions").ffi_check
        self._running: dict[str, Any] = {}
        self._printing = threading.Lock()
        self._ops: dict[str, Callable[[Fields], object]] = {
            "producer": self._producer,
            "send": self._send,
            "consumer": self._consumer,
            "stop": self._stop,
        }

    def serve(self) -> None:
        """Do as standard input says, until it ends."""
        for line in sys.stdin:
            threading.Thread(target=self._answer, args=(json.loads(line),), daemon=True).start()

    def _show(self, line: Fields) -> None:
        with self._printing:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()

    def _answer(self, command: Fields) -> None:
        try:
            result = self._ops[command["op"]](command)
        except Exception as error:  # noqa: BLE001  (whatever it is, the test is told)
            traceback.print_exc()
            self._show({"id": command["id"], "error": f"{type(error).__name__}: {error}"})
        else:
            self._show({"id": command["id"], "result": result})

    # -- producing ------------------------------------------------------------------------------

    def _producer(self, command: Fields) -> None:
        producer = self._client.Producer(command["group"], timeout=10_000)
        producer.set_namesrv_addr(self._names)
        producer.set_max_message_size(MESSAGE_BYTES_MAX)
        dll = self._ffi.dll
        self._ffi_check(dll.SetProducerInstanceName(producer._handle, command["name"].encode()))
        producer.start()
        self._running[command["name"]] = producer

    def _message(self, topic: str, given: Fields) -> Any:  # noqa: ANN401  (a class of the wheel)
        message = self._client.Message(topic)
        if "base64" in given:
            # The wheel's own `set_body` ends at the first zero byte.
            body = base64.b64decode(given["base64"])
            self._ffi_check(self._ffi.dll.SetByteMessageBody(message._handle, body, len(body)))
        else:
            message.set_body(given["body"])
        if "tag" in given:
            message.set_tags(given["tag"])
        if "keys" in given:
            message.set_keys(given["keys"])
        if "delay" in given:
            message.set_delay_time_level(given["delay"])
        for name, value in given.get("properties", {}).items():
            message.set_property(name, value)
        return message

    def _send(self, command: Fields) -> object:
        producer = self._running[command["producer"]]
        given = command["messages"]
        messages = [self._message(command["topic"], one) for one in given]
        match command["how"]:
            case "sync":
                pairs = zip(given, messages, strict=True)
                return [_told(self._send_one(producer, one, message)) for one, message in pairs]
            case "oneway":
                for message in messages:
                    producer.send_oneway(message)
                return None
            case "async":
                return self._send_async(producer, messages)
            case "batch":
                return [_told(producer.send_batch(messages))]
        raise ValueError(f"this client cannot send {command['how']}")

    @staticmethod
    def _send_one(producer: Any, given: Fields, message: Any) -> Any:  # noqa: ANN401
        if "shard" in given:
            return producer.send_orderly(message, zlib.crc32(given["shard"].encode()) & 0xFFFF)
        return producer.send_sync(message)

    @staticmethod
    def _send_async(producer: Any, messages: list[Any]) -> object:  # noqa: ANN401
        called = threading.Semaphore(0)
        results: list[object] = [None] * len(messages)

        def putter(place: int) -> tuple[Callable[[Any], None], Callable[[Any], None]]:
            def put(result: object) -> None:
                results[place] = result if results[place] is None else "called twice"
                called.release()

            return lambda sent: put(_told(sent)), lambda error: put(str(error))

        for place, message in enumerate(messages):
            producer.send_async(message, *putter(place))
        for _ in messages:
            if not called.acquire(timeout=ASYNC_SECONDS_MAX):
                raise TimeoutError("a callback has not been called")
        return results

    # -- consuming ------------------------------------------------------------------------------

    def _consumer(self, command: Fields) -> None:
        kinds = self._ffi.MessageModel
        model = kinds.BROADCASTING if command.get("broadcast") else kinds.CLUSTERING
        consumer = self._client.PushConsumer(
            command["group"], orderly=bool(command.get("orderly")), message_model=model
        )
        consumer.set_namesrv_addr(self._names)
        consumer.set_instance_name(command["name"])
        consumer.set_thread_count(2)
        handle = consumer._handle
        topic, expression = command["topic"].encode(), command["tag"].encode()
        self._ffi_check(self._ffi.dll.Subscribe(handle, topic, expression))

        # The wheel's own `subscribe` lets an exception into C, where it counts as success.
        def on_message(_consumer: int, message: int) -> int:
            return self._consumed(command, self._client.RecvMessage(message))

        consumer._register_callback(on_message)
        consumer.start()
        self._running[command["name"]] = consumer

    def _consumed(self, command: Fields, message: Any) -> int:  # noqa: ANN401
        try:
            raw = self._bytes_of(message) if command.get("raw") else None
            self._show(_event(command, message, raw))
        except Exception:  # noqa: BLE001  (nothing may leave a callback of C)
            traceback.print_exc()
            return RETRY_LATER
        return RETRY_LATER if message.reconsume_times < command.get("failures", 0) else 0

    def _bytes_of(self, message: Any) -> bytes:  # noqa: ANN401
        """Return a body with its zero bytes, for which the C interface has no length.

        It gives the inside of a C++ string of the old kind, which has its length in front.
        """
        get = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(("GetMessageBody", self._ffi.dll))
        start = get(message._handle)
        return ctypes.string_at(start, ctypes.c_size_t.from_address(start - STRING_HEAD).value)

    def _stop(self, command: Fields) -> None:
        self._running.pop(command["name"]).shutdown()


def _told(sent: Any) -> Fields:  # noqa: ANN401
    status = "SEND_OK" if sent.status == 0 else str(sent.status)
    return {"status": status, "key": sent.msg_id, "offset": sent.offset}


def _event(command: Fields, message: Any, raw: bytes | None) -> Fields:  # noqa: ANN401
    body = {"body": _text(message.body)} if raw is None else {"base64": _base64(raw)}
    values = {name: message.get_property(name) for name in command.get("show", ())}
    return {
        "event": "message",
        "received": time.time_ns() // 1_000_000,
        "consumer": command["name"],
        "topic": _text(message.topic),
        **body,
        "tag": _text(message.tags),
        "keys": _text(message.keys),
        "queue": message.queue_id,
        "offset": message.queue_offset,
        "times": message.reconsume_times,
        "born": message.born_timestamp,
        "stored": message.store_timestamp,
        "key": _text(message.id),
        "properties": {name: _text(value) for name, value in values.items()},
    }


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _text(value: str | bytes | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[2])
    assert ctypes.sizeof(ctypes.c_void_p) == 8  # the wheel is for 64 bits
    Peer(sys.argv[1]).serve()
    os._exit(0)  # without the C++ threads' opinion
