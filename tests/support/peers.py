"""Clients that others wrote, as processes: installed once for each clone, started, spoken to.

Every program in `tests/interop/peers` reads commands in JSON and writes answers and events; the
words are in the README there. What they need is fetched into `build/peers` by the package client of
their language, in the versions that the files there pin. A client whose files have changed is
installed anew: the folder's name has a sum of them.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from support import apache, tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "tests" / "interop" / "peers"
HOME: Final = ROOT / "build" / "peers"
INSTALL_SECONDS_MAX: Final = 300
INSTALL_TRIES: Final = 3
ANSWER_SECONDS_MAX: Final = 90
LINES_SHOWN: Final = 30

Message = dict[str, Any]


class NotInstalled(Exception):
    """A client cannot be had here; the text says why."""


class PeerError(Exception):
    """A client says that it cannot; the text is its own."""


# -- installing ----------------------------------------------------------------------------------


def java(version: str, *options: str) -> list[str]:
    """Return the command that starts the Java client of a release."""
    try:
        class_path = apache.fetch(version)
    except apache.NotFetched as error:
        raise NotInstalled(str(error)) from None
    source = SOURCES / "java" / "Peer.java"

    def compiled(folder: Path) -> None:
        _run(
            [_program("javac"), "-nowarn", "-Xlint:none", "-d", str(folder), "-cp", class_path,
             str(source)]
        )  # fmt: skip

    folder = _installed(f"java-{version}", [source], compiled)
    return [
        _program("java"), "-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
        *options, "-cp", os.pathsep.join([str(folder), class_path]), "Peer",
    ]  # fmt: skip


def go() -> list[str]:
    """Return the command that starts the Go client."""
    source = SOURCES / "go"

    def built(folder: Path) -> None:
        environment = {
            "GOPATH": str(HOME / "gopath"),
            "GOCACHE": str(HOME / "gocache"),
            # What was fetched may be deleted again with `rm`.
            "GOFLAGS": f"{os.environ.get('GOFLAGS', '')} -modcacherw".strip(),
            "CGO_ENABLED": "0",
        }
        _run([_program("go"), "build", "-o", str(folder / "peer"), "."], source, environment)

    names = ("main.go", "go.mod", "go.sum")
    return [str(_installed("go", [source / name for name in names], built) / "peer")]


def node() -> list[str]:
    """Return the command that starts the Node client; it wants the folder after the address."""
    source = SOURCES / "node"
    files = [source / name for name in ("package.json", "package-lock.json", ".npmrc")]

    def fetched(folder: Path) -> None:
        for file in files:
            shutil.copy(file, folder)
        _run(
            [_program("npm"), "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel",
             "error"],
            folder,
            {"npm_config_cache": str(HOME / "npm-cache")},
        )  # fmt: skip

    folder = _installed("node", files, fetched)
    return [_program("node"), str(source / "peer.js"), "{names}", str(folder)]


def cpp() -> list[str]:
    """Return the command that starts the C++ client; it wants the folder after the address."""
    needed = SOURCES / "cpp" / "requirements.txt"

    def fetched(folder: Path) -> None:
        _run(
            [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--require-hashes",
             "--only-binary", ":all:", "--target", str(folder), "-r", str(needed)]
        )  # fmt: skip

    folder = _installed("cpp", [needed], fetched)
    return [sys.executable, str(SOURCES / "cpp" / "peer.py"), "{names}", str(folder)]


def python() -> list[str]:
    """Return the command that starts the project's own client."""
    return [sys.executable, str(SOURCES / "python" / "peer.py")]


def _installed(name: str, files: Sequence[Path], install: Callable[[Path], None]) -> Path:
    """Return the folder that `install` has filled, now or in an earlier run."""
    total = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]
    folder = HOME / f"{name}-{total}"
    HOME.mkdir(parents=True, exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        # One download for all workers of a test run.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            unfinished = HOME / f"{name}.unfinished"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            install(unfinished)
            unfinished.rename(folder)
    return folder


def _program(name: str) -> str:
    why = tools.problem(name)
    if why is not None:
        raise NotInstalled(f"{name}: {why}")
    return tools.path(name)


def _run(
    command: Sequence[str], folder: Path = ROOT, environment: Mapping[str, str] | None = None
) -> None:
    said = ""
    for _ in range(INSTALL_TRIES):
        try:
            done = subprocess.run(
                command, cwd=folder, env={**os.environ, **(environment or {})},
                capture_output=True, text=True, check=False, timeout=INSTALL_SECONDS_MAX,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            said = f"not done after {INSTALL_SECONDS_MAX} s"
            continue
        if done.returncode == 0:
            return
        said = "\n".join((done.stdout + done.stderr).splitlines()[-10:])
    raise NotInstalled(f"{Path(command[0]).name} cannot install it: {said}")


# -- running -------------------------------------------------------------------------------------


class Peer:
    """A running client program. Its commands may be given from several threads."""

    def __init__(self, process: subprocess.Popen[str], errors: Path) -> None:
        self._process = process
        self._errors = errors
        self._ids = count(1)
        self._writing = threading.Lock()
        self._changed = threading.Condition()
        self._answers: dict[int, dict[str, Any]] = {}
        self._received: dict[str, list[Message]] = defaultdict(list)
        self._checks: list[str] = []
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            with self._changed:
                match said.get("event"):
                    case "message":
                        self._received[said["consumer"]].append(said)
                    case "check":
                        self._checks.append(said["body"])
                    case _:
                        self._answers[said["id"]] = said
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def call(self, op: str, /, **fields: object) -> Any:  # noqa: ANN401  (JSON)
        """Give a command and return its result.

        Raises:
            PeerError: the client has failed, or has ended.
            TimeoutError: it does not answer.
        """
        number = next(self._ids)
        line = json.dumps({"op": op, "id": number, **fields}) + "\n"
        assert self._process.stdin is not None
        with self._writing:
            self._process.stdin.write(line)
            self._process.stdin.flush()
        with self._changed:
            self._changed.wait_for(
                lambda: number in self._answers or self._ended, ANSWER_SECONDS_MAX
            )
            answer = self._answers.pop(number, None)
        if answer is None:
            if self._ended:
                raise PeerError(f"it has ended; it said:\n{self.said()}")
            raise TimeoutError(f"{op}: no answer in {ANSWER_SECONDS_MAX} s:\n{self.said()}")
        if "error" in answer:
            raise PeerError(f"{op}: {answer['error']}")
        return answer.get("result")

    def received(self, consumer: str) -> list[Message]:
        """Return what a consumer has got so far."""
        with self._changed:
            return list(self._received[consumer])

    def checks(self) -> list[str]:
        """Return the bodies of half messages that the broker has asked about."""
        with self._changed:
            return list(self._checks)

    def wait(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until something holds that events may have brought about; say whether it does."""
        deadline = time.monotonic() + seconds
        with self._changed:
            # Short steps, because events of other clients may count too.
            while not condition():
                left = deadline - time.monotonic()
                if left <= 0:
                    return False
                self._changed.wait(min(left, 0.1))
        return True

    def end(self) -> None:
        """End the program at once."""
        self._process.kill()
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def said(self) -> str:
        """Return the end of what it wrote to standard error."""
        lines = self._errors.read_text(encoding="utf-8", errors="replace").splitlines()
        return "\n".join(lines[-LINES_SHOWN:])


@contextmanager
def running(command: Sequence[str], name_server: str, work: Path) -> Iterator[Peer]:
    """Run a client program; its files go under `work`, and it is gone when the block has ended."""
    work.mkdir(parents=True, exist_ok=True)
    words = [name_server if word == "{names}" else word for word in command]
    if "{names}" not in command:
        words.append(name_server)
    if Path(words[0]).name == "java":
        words.insert(1, f"-Duser.home={work}")
    environment = {**os.environ, "HOME": str(work), "TZ": "UTC"}
    environment.pop("NAMESRV_ADDR", None)
    environment["PYTHONPATH"] = str(ROOT / "src")  # the project's own client is not installed
    errors = work / "errors.txt"
    with errors.open("wb") as output:
        process = subprocess.Popen(
            words, cwd=work, env=environment, text=True, encoding="utf-8",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=output,
        )  # fmt: skip
    peer = Peer(process, errors)
    try:
        yield peer
    finally:
        peer.end()
