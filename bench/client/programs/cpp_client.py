"""The C++ client, through its wheel for Python, as a program that is measured: see `../plans.py`.

Started with a plan in JSON and the folder that the wheel is in. Every 100 ms it prints a line:
nanoseconds of a clock, messages done. It imports nothing of gantrymq.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import sys
import threading
import time
from collections import deque
from typing import Any

SAMPLE_S = 0.1
KEPT = 4096
"""Messages that stay alive for as long as the library may look at them."""


class Program:
    """What is done, and how much of it."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan
        self._client = importlib.import_module("rocketmq.client")
        self._ffi = importlib.import_module("rocketmq.ffi")
        # `next` of a counter is one step even between threads.
        self._counter = itertools.count(1)
        self._count = 0
        self._window = threading.Semaphore(plan["in_flight"])
        self._kept: deque[object] = deque(maxlen=KEPT)

    def run(self) -> None:
        """Do as the plan says, until it is done or the time is over."""
        if self._plan["mode"] == "send":
            self._start_sending()
            messages = float("inf")
        else:
            self._start_consuming()
            messages = self._plan["messages"]
        end = time.monotonic() + self._plan["seconds"]
        while time.monotonic() < end and self._count < messages:
            print(time.monotonic_ns(), self._count, flush=True)
            time.sleep(SAMPLE_S)
        print(time.monotonic_ns(), self._count, flush=True)

    def _done(self, _result: object = None) -> None:
        self._count = next(self._counter)

    # -- producing ------------------------------------------------------------------------------

    def _start_sending(self) -> None:
        self._producer = self._client.Producer("bench_producers", timeout=10_000)
        self._producer.set_namesrv_addr(self._plan["address"])
        self._producer.start()
        kind, _, threads = self._plan["how"].partition(":")
        target = {"sync": self._sync, "async": self._async, "c_async": self._c_async}[kind]
        for _ in range(int(threads or 1)):
            threading.Thread(target=target, daemon=True).start()

    def _message(self) -> Any:  # noqa: ANN401  (a class of the wheel)
        message = self._client.Message(self._plan["topic"])
        message.set_body("x" * self._plan["body_bytes"])
        return message

    def _sync(self) -> None:
        while True:
            self._producer.send_sync(self._message())
            self._done()

    def _async(self) -> None:
        def on_success(_result: object) -> None:
            self._done()
            self._window.release()

        while True:
            self._window.acquire()
            message = self._message()
            self._kept.append(message)
            self._producer.send_async(message, on_success, lambda _error: self._window.release())

    def _c_async(self) -> None:
        """Send as the wheel does, without making two new callbacks for each message."""

        def on_success(_result: object) -> None:
            self._done()
            self._window.release()

        def on_exception(_error: object) -> None:
            self._window.release()

        success = self._ffi.SEND_SUCCESS_CALLBACK(on_success)
        exception = self._ffi.SEND_EXCEPTION_CALLBACK(on_exception)
        send = self._ffi.dll.SendMessageAsync
        while True:
            self._window.acquire()
            message = self._message()
            self._kept.append(message)
            if send(self._producer._handle, message, success, exception) != 0:
                self._window.release()

    # -- consuming ------------------------------------------------------------------------------

    def _start_consuming(self) -> None:
        self._consumer = self._client.PushConsumer(self._plan["group"])
        self._consumer.set_namesrv_addr(self._plan["address"])
        if self._plan["how"]:
            self._consumer.set_thread_count(int(self._plan["how"]))
        self._consumer.subscribe(self._plan["topic"], self._done)
        self._consumer.start()


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[2])
    Program(json.loads(sys.argv[1])).run()
    os._exit(0)  # without the C++ threads' opinion
