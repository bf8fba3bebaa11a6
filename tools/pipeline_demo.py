"""The tutorial of docs/pipeline.md as one program: `make pipeline-demo`.

Starts a server, produces orders, archives them, kills the archive half way, resumes it, finds an
order, rebuilds the consume queues and audits the store. Every command is printed before it is run;
the page shows the same ones. `ARGS='--orders 20000'` makes it smaller.
"""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

from gantrymq.blocking import Producer
from gantrymq.cli.main import main as command_line
from gantrymq.model.message import Message
from gantrymq.node.free_ports import FreePorts

TOPIC = "Orders"
BATCH = 500
STARTED_S = 60.0
KILLED_S = 300.0
GANTRYMQ = [sys.executable, "-m", "gantrymq"]
COMMANDS = {
    "archive": "gantrymq pipeline run archive --name-server 127.0.0.1:9876 --topic Orders"
    " --to lake --batch-rows {batch} --report archive.json",
    "search": "gantrymq pipeline run search --lake lake --key order-4711"
    " --json-path $.city=Lisbon --report search.json",
    "latency": "gantrymq pipeline run latency --lake lake --html latency.html",
    "rebuild": "gantrymq pipeline run rebuild-cq --path data/store --to rebuilt"
    " --report rebuilt.json",
    "audit": "gantrymq pipeline run audit --path data/store --html audit.html",
}
"""What the page shows; the address and the size of a batch are the demo's own."""


def main() -> int:
    """Run the tutorial; return its exit status."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--orders", type=int, default=1_000_000, help="how many to produce")
    parser.add_argument("--folder", type=Path, default=Path("pipeline-demo"), help="where to work")
    parser.add_argument("--master", default="local[*]", help="Spark master")
    parser.add_argument(
        "--one-spark", action="store_true",
        help="after the kill run all jobs in this process, with one Spark: quicker",
    )  # fmt: skip
    chosen = parser.parse_args()
    folder = chosen.folder.absolute()
    if folder.exists() and any(folder.iterdir()):
        print(f"{folder} is not empty: remove it, or name another with --folder")
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    os.chdir(folder)
    demo = Demo(folder, chosen.orders, chosen.master, one_spark=chosen.one_spark)
    try:
        demo.run()
    finally:
        demo.stop()
    print(f"done: look at {folder / 'audit.html'} and {folder / 'latency.html'}")
    return 0


class Demo:
    """One run of the tutorial."""

    def __init__(self, folder: Path, orders: int, master: str, *, one_spark: bool) -> None:
        self._folder = folder
        self._has_one_spark = one_spark
        self._orders = orders
        self._master = master
        self._server: subprocess.Popen[bytes] | None = None
        self._address = ""

    def run(self) -> None:
        """Do all of it."""
        self._step(f"a server, its data in {self._folder / 'data'}")
        self._start_server()
        self._step(f"{self._orders} orders")
        self._produce()
        self._step("an archive of them, killed half way")
        self._archive_and_kill()
        self._step("the archive again: it goes on where the last batch ended")
        self._command("archive")
        self._step("one order, by its key and a value in its body")
        self._command("search")
        self._step("how long orders took to the broker")
        self._command("latency")
        self._step("the broker stops; its consume queues are made again from the log alone")
        self.stop()
        self._command("rebuild")
        self._step("every record of the store, checked")
        self._command("audit")

    @staticmethod
    def _step(text: str) -> None:
        print(f"\n== {text}", flush=True)

    # -- the server ------------------------------------------------------------------------------

    def _start_server(self) -> None:
        ports = FreePorts()
        namesrv, port = ports.find(), ports.find_for_broker()
        self._address = f"127.0.0.1:{namesrv}"
        with (self._folder / "server.log").open("wb") as log:
            self._server = subprocess.Popen(
                [*GANTRYMQ, "server", "--data", str(self._folder / "data"), "--port", str(port),
                 "--namesrv-port", str(namesrv)],
                stdout=log, stderr=log,
            )  # fmt: skip
        give_up = time.monotonic() + STARTED_S
        while time.monotonic() < give_up:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                return
            time.sleep(0.05)
        raise TimeoutError((self._folder / "server.log").read_text()[-1000:])

    def stop(self) -> None:
        """Stop the server, as an operator would."""
        server, self._server = self._server, None
        if server is not None:
            server.terminate()
            server.wait(STARTED_S)

    def _produce(self) -> None:
        cities = ("Lisbon", "Oslo", "Quito", "Turin")
        with Producer(self._address, "shop") as producer:
            for first in range(0, self._orders, BATCH):
                producer.send_batch(
                    Message(
                        topic=TOPIC,
                        body=f'{{"id": {number}, "city": "{cities[number % 4 - 3]}"}}'.encode(),
                        keys=(f"order-{number}",),
                    )
                    for number in range(first, min(first + BATCH, self._orders))
                )

    # -- the jobs --------------------------------------------------------------------------------

    def _line(self, name: str) -> list[str]:
        text = COMMANDS[name].format(batch=max(self._orders // 10, 1))
        text = text.replace("127.0.0.1:9876", self._address)
        print(f"$ {text}", flush=True)
        return [*shlex.split(text)[1:], "--master", self._master]

    def _command(self, name: str) -> None:
        line = self._line(name)
        if self._has_one_spark:
            if command_line(line):
                raise SystemExit(f"{name} did not work")
            return
        subprocess.run([*GANTRYMQ, *line], check=True, stderr=subprocess.DEVNULL)

    def _archive_and_kill(self) -> None:
        job = subprocess.Popen(
            [*GANTRYMQ, *self._line("archive")], start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        manifest = self._folder / "lake" / "manifest"
        give_up = time.monotonic() + KILLED_S
        while job.poll() is None and time.monotonic() < give_up:
            if manifest.is_dir() and len(list(manifest.glob("[0-9]*.json"))) >= 5:
                break
            time.sleep(0.02)
        with suppress(ProcessLookupError):
            os.killpg(job.pid, signal.SIGKILL)
        job.wait(STARTED_S)
        done = len(list(manifest.glob("[0-9]*.json")))
        print(f"killed after {done} of 10 batches (kill -9)")


if __name__ == "__main__":
    raise SystemExit(main())
