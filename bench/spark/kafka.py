"""Kafka, fetched by its name from Maven Central, started as one broker, filled, and stopped."""

from __future__ import annotations

import socket
import subprocess
import time
import uuid
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gantrymq.node.free_ports import FreePorts
from support import tools

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE: Final = Path(__file__).parent
HOME: Final = HERE.parents[1] / "build" / "kafka"
FETCH_SECONDS_MAX: Final = 600
START_SECONDS_MAX: Final = 90
FILL_SECONDS_MAX: Final = 600
HEAP: Final = ("-Xms1g", "-Xmx1g", "-XX:+UseG1GC")


class NotMeasured(Exception):
    """Kafka cannot be had or does not run here; the text says why."""


def class_path(name: str) -> str:
    """Return the class path of `server` or `connector`, fetched if this clone does not have it.

    Raises:
        NotMeasured: Maven is missing, or cannot get it.
    """
    HOME.mkdir(parents=True, exist_ok=True)
    listing = HOME / f"{name}.classpath"
    if not listing.exists():
        why = tools.problem("mvn")
        if why is not None:
            raise NotMeasured(f"mvn: {why}")
        unfinished = listing.with_suffix(".unfinished")
        command = [
            tools.path("mvn"), "--batch-mode", "--quiet", "--no-transfer-progress",
            "--file", str(HERE / f"{name}.xml"), f"-Dmaven.repo.local={HOME / 'repository'}",
            f"-Dmdep.outputFile={unfinished}", "dependency:build-classpath",
        ]  # fmt: skip
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, check=False, timeout=FETCH_SECONDS_MAX
        )
        if done.returncode:
            raise NotMeasured(f"Maven cannot get {name}.xml: {done.stdout[:500]}")
        unfinished.replace(listing)
    return listing.read_text(encoding="utf-8").strip()


@contextmanager
def broker(work: Path) -> Iterator[str]:
    """Run one broker on the loopback; yields its address.

    Raises:
        NotMeasured: it does not start.
    """
    work.mkdir(parents=True, exist_ok=True)
    jars, ports = class_path("server"), FreePorts()
    port, control = ports.find(), ports.find()
    config = work / "server.properties"
    config.write_text(
        f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{control}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={work / "logs"}
num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
""",
        encoding="utf-8",
    )
    java = [tools.path("java"), *HEAP, "-cp", jars]
    log = (work / "kafka.log").open("wb")
    cluster = uuid.uuid4().hex[:22]
    subprocess.run(  # noqa: S603
        [*java, "kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config)],
        stdout=log, stderr=log, check=True, timeout=START_SECONDS_MAX,
    )  # fmt: skip
    process = subprocess.Popen([*java, "kafka.Kafka", str(config)], stdout=log, stderr=log)  # noqa: S603
    try:
        deadline = time.monotonic() + START_SECONDS_MAX
        while not _answers(port):
            if process.poll() is not None or time.monotonic() > deadline:
                raise NotMeasured(f"Kafka does not start; see {work / 'kafka.log'}")
            time.sleep(0.2)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        log.close()


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def fill(address: str, topic: str, count: int, body_bytes: int) -> None:
    """Send so many messages, with Kafka's own generator."""
    command = [
        tools.path("java"), "-Xmx512m", "-cp", class_path("server"),
        "org.apache.kafka.tools.ProducerPerformance", "--topic", topic,
        "--num-records", str(count), "--record-size", str(body_bytes), "--throughput", "-1",
        "--producer-props", f"bootstrap.servers={address}", "batch.size=65536", "linger.ms=5",
    ]  # fmt: skip
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, check=False, timeout=FILL_SECONDS_MAX
    )
    if done.returncode:
        raise NotMeasured(f"Kafka was not filled: {(done.stdout + done.stderr)[-500:]}")
