"""`rocketmq-python-client`, which speaks gRPC to a proxy, as a program that is measured.

Started with a plan in JSON (`../plans.py`) and the folder that it is installed in. Every 100 ms it
prints a line: nanoseconds of a clock, messages done. It imports nothing of gantrymq.
"""

from __future__ import annotations

import importlib
import itertools
import json
import os
import sys
import threading
import time
from typing import Any

SAMPLE_S = 0.1


class Program:
    """What is done, and how much of it."""

    def __init__(self, plan: dict[str, Any]) -> None:
        self._plan = plan
        self._client = importlib.import_module("rocketmq")
        self._counter = itertools.count(1)
        self._count = 0
        self._window = threading.Semaphore(plan["in_flight"])

    def run(self) -> None:
        """Do as the plan says, until it is done or the time is over."""
        credentials = self._client.Credentials()
        where = self._client.ClientConfiguration(
            self._plan["address"], credentials, request_timeout=10
        )
        messages = float("inf")
        if self._plan["mode"] == "send":
            self._start_sending(where)
        else:
            self._start_consuming(where)
            messages = self._plan["messages"]
        end = time.monotonic() + self._plan["seconds"]
        while time.monotonic() < end and self._count < messages:
            print(time.monotonic_ns(), self._count, flush=True)
            time.sleep(SAMPLE_S)
        print(time.monotonic_ns(), self._count, flush=True)

    def _done(self) -> None:
        self._count = next(self._counter)

    def _start_sending(self, where: object) -> None:
        self._producer = self._client.Producer(where, (self._plan["topic"],))
        self._producer.startup()
        kind, _, threads = self._plan["how"].partition(":")
        target = self._sync if kind == "sync" else self._async
        for _ in range(int(threads or 1)):
            threading.Thread(target=target, daemon=True).start()

    def _message(self) -> Any:  # noqa: ANN401  (a class of the client)
        message = self._client.Message()
        message.topic = self._plan["topic"]
        message.body = b"x" * self._plan["body_bytes"]
        return message

    def _sync(self) -> None:
        while True:
            self._producer.send(self._message())
            self._done()

    def _async(self) -> None:
        def ended(future: Any) -> None:  # noqa: ANN401
            self._window.release()
            if future.exception() is None:
                self._done()

        while True:
            self._window.acquire()
            self._producer.send_async(self._message()).add_done_callback(ended)

    def _start_consuming(self, where: object) -> None:
        done = self._done
        success = self._client.ConsumeResult.SUCCESS

        class Listener(self._client.MessageListener):  # type: ignore[misc,name-defined]
            """Counts."""

            def consume(self, _message: object) -> Any:  # noqa: ANN401
                """Count a message."""
                done()
                return success

        wanted = {self._plan["topic"]: self._client.FilterExpression()}
        self._consumer = self._client.PushConsumer(where, self._plan["group"], Listener(), wanted)
        self._consumer.startup()


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[2])
    Program(json.loads(sys.argv[1])).run()
    os._exit(0)
