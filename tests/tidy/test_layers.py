"""The direction of imports, and proof that the check notices one that goes the wrong way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidy import layers

SOURCE = Path(__file__).parents[2] / "src"


def test_every_import_goes_down() -> None:
    assert layers.violations(SOURCE) == []


def test_the_sources_are_seen() -> None:
    modules = {layers.module_name(path, SOURCE) for path in layers.source_files(SOURCE)}
    assert {"gantrymq", "gantrymq.cli.main", "gantrymq.kernel._native"} <= modules
    entry = layers.imports_of(SOURCE / "gantrymq" / "__main__.py", SOURCE)
    assert "gantrymq.cli.main.main" in {found.module for found in entry}


def test_every_part_is_in_the_table() -> None:
    parts = {
        layers.part_of(layers.module_name(path, SOURCE)) for path in layers.source_files(SOURCE)
    }
    assert parts - layers.BASE <= set(layers.MAY_USE)


def plant(folder: Path, module: str, text: str) -> list[str]:
    """Return what the check says of a tree with this one module."""
    path = folder.joinpath(*module.split("."))
    path.parent.mkdir(parents=True)
    path.with_suffix(".pyx" if module.endswith("_native") else ".py").write_text(
        text, encoding="utf-8"
    )
    return layers.violations(folder)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("gantrymq.model.topic", "from gantrymq.wire import frame\n"),
        ("gantrymq.model.topic", "import gantrymq.wire.frame\n"),
        ("gantrymq.model.topic", "def f() -> None:\n    from gantrymq.kernel import kernel\n"),
        ("gantrymq.wire.frame", "import gantrymq.store.reader as reader\n"),
        ("gantrymq.wire.frame", "if TYPE_CHECKING:\n    from gantrymq.broker.send import Send\n"),
        ("gantrymq.wire.frame", "from ..broker import send\n"),
        ("gantrymq.wire.headers.send", "from ...store import flush\n"),
        ("gantrymq.broker.send", "from gantrymq.transport.server import Server\n"),
        ("gantrymq.broker.send", "import socket\n"),
        ("gantrymq.broker.send", "from asyncio import streams\n"),
        ("gantrymq.store.flush", "from ssl import SSLContext\n"),
        ("gantrymq.transport.server", "from gantrymq.broker.router import Router\n"),
        ("gantrymq.transport.server", "from gantrymq.store import message_store\n"),
        ("gantrymq.namesrv.routes", "from gantrymq.store import message_store\n"),
        ("gantrymq.client.producer", "from gantrymq.store import reader\n"),
        ("gantrymq.dashboard.app", "from gantrymq.node import config\n"),
        ("gantrymq.cli.topic", "from gantrymq.store import commit_log\n"),
        ("gantrymq.spark.source", "from gantrymq.store.readership import x\n"),
        ("gantrymq.spark.source", "from gantrymq.store import message_store\n"),
        ("gantrymq.errors", "from gantrymq.model import message\n"),
        ("gantrymq.oddments.x", "from gantrymq.wire import frame\n"),
        ("gantrymq.kernel._native", "    from gantrymq.wire.frame import Frame\n"),
        ("gantrymq.kernel._native", "cimport gantrymq.store.x\n"),
    ],
)  # fmt: skip
def test_an_import_that_goes_up_is_found(tmp_path: Path, module: str, text: str) -> None:
    assert len(plant(tmp_path, module, text)) == 1


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("gantrymq.wire.frame", "from gantrymq.kernel import kernel\n"),
        ("gantrymq.wire.frame", "from gantrymq import errors\nimport gantrymq.limits\n"),
        ("gantrymq.wire.headers.send", "from ..frame import Frame\nfrom . import pull\n"),
        ("gantrymq.store.flush", "import asyncio\nfrom gantrymq.clock import Clock\n"),
        ("gantrymq.transport.server", "import socket\nfrom gantrymq.wire import frame\n"),
        ("gantrymq.cluster.leader", "from gantrymq.transport import server\n"),
        ("gantrymq.cli.store", "from gantrymq.store import verify\n"),
        ("gantrymq.cli.serve", "from gantrymq.node import config\n"),
        ("gantrymq.spark.source", "from gantrymq.store.reader import Reader\n"),
        ("gantrymq.testing.broker", "from gantrymq.node import all_in_one\nimport socket\n"),
    ],
)  # fmt: skip
def test_an_import_that_goes_down_is_not(tmp_path: Path, module: str, text: str) -> None:
    assert plant(tmp_path, module, text) == []
