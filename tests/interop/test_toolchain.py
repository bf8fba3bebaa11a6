"""The programs that interoperability tests are built on start on this machine."""

from __future__ import annotations

import subprocess
import time
import urllib.request
from typing import TYPE_CHECKING
from urllib.error import URLError

import pytest

from support import tools
from support.ports import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_SECONDS_MAX = 60

HELLO = """
public class Hello {
    public static void main(String[] names) { System.out.println("hello from Java " + names[0]); }
}
"""

PAGE = (
    "<!doctype html><title>page</title><p id=where></p><script>where.textContent = 6 * 7</script>"
)


@pytest.mark.tool("java")
@pytest.mark.tool("javac")
def test_java_compiles_and_runs(tmp_path: Path) -> None:
    source = tmp_path / "Hello.java"
    source.write_text(HELLO, encoding="utf-8")
    subprocess.run([tools.path("javac"), str(source)], check=True, timeout=START_SECONDS_MAX)
    done = subprocess.run(
        [tools.path("java"), "-cp", str(tmp_path), "Hello", "17"],
        capture_output=True,
        text=True,
        check=True,
        timeout=START_SECONDS_MAX,
    )
    assert done.stdout == "hello from Java 17\n"


@pytest.fixture
def etcd(tmp_path: Path) -> Iterator[str]:
    """Start one etcd with its data in `tmp_path`; yield its address."""
    client, peer = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
    command = [tools.path("etcd"), "--name", "one", "--data-dir", str(tmp_path / "etcd")]
    command += ["--listen-client-urls", client, "--advertise-client-urls", client]
    command += ["--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer]
    command += ["--initial-cluster", f"one={peer}", "--logger", "zap"]
    with (tmp_path / "etcd.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield client
        finally:
            process.terminate()
            process.wait(START_SECONDS_MAX)


@pytest.mark.tool("etcd")
def test_etcd_starts_and_is_healthy(etcd: str) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    answer = b""
    while not answer and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{etcd}/health", timeout=5) as reply:  # noqa: S310  (our own)
                answer = reply.read()
        except (URLError, ConnectionError, TimeoutError):
            time.sleep(0.1)
    assert b'"health":"true"' in answer


@pytest.mark.tool("chromium")
def test_chromium_runs_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(PAGE, encoding="utf-8")
    done = subprocess.run(
        [
            tools.path("chromium"),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            f"--user-data-dir={tmp_path / 'profile'}",
            "--dump-dom",
            page.as_uri(),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=START_SECONDS_MAX,
    )
    assert '<p id="where">42</p>' in done.stdout, done.stderr
