"""The offline tools on recorded stores that something has happened to: they say what, and no more.

Whatever was damaged, removed or put there, a command ends with status 0 or 1 and a line of text,
and leaves the directory as it was. A broker opens such a store, or says why it does not.
"""

from __future__ import annotations

import io
import os
import shutil
from contextlib import redirect_stderr, redirect_stdout
from random import Random
from typing import TYPE_CHECKING

import pytest

from gantrymq.cli.store_commands import Request, run
from gantrymq.errors import GantryError
from support.golden_trees import configuration, message_store, tree_digest, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

LABELS = ("apache-4.9.7-clean", "apache-4.9.7-killed")
TIMES = 2
FOREIGN = (".DS_Store", "notes.txt", "1", "99999999999999999999", "00000000000000000000.tmp")


def flipped(path: Path, dice: Random) -> None:
    """Turn bits over, where there is anything."""
    data = bytearray(path.read_bytes())
    used = [at for at in range(0, len(data), 7) if data[at]] or range(len(data))
    for _ in range(20 if used else 0):
        data[dice.choice(used)] ^= 1 << dice.randrange(8)
    path.write_bytes(data)


def cut(path: Path, dice: Random) -> None:
    path.write_bytes(path.read_bytes()[: dice.randrange(max(path.stat().st_size, 1))])


def emptied(path: Path, _dice: Random) -> None:
    path.write_bytes(b"")


def grown(path: Path, dice: Random) -> None:
    path.write_bytes(path.read_bytes() + dice.randbytes(20))


def removed(path: Path, _dice: Random) -> None:
    path.unlink()


def joined(path: Path, dice: Random) -> None:
    """Put something beside it that does not belong there, empty or as long as it is."""
    size = dice.choice((0, 5, path.stat().st_size))
    (path.parent / dice.choice(FOREIGN)).write_bytes(dice.randbytes(size))


def renamed(path: Path, dice: Random) -> None:
    path.rename(path.with_name(dice.choice(("abc", "0", *FOREIGN))))


def replaced(path: Path, _dice: Random) -> None:
    """Have a directory where it was."""
    path.unlink()
    path.mkdir()


def gone(path: Path, _dice: Random) -> None:
    """Remove all that lies with it."""
    shutil.rmtree(path.parent)


DAMAGES = (flipped, cut, emptied, grown, removed, joined, renamed, replaced, gone)


@pytest.fixture(scope="module", params=LABELS)
def tree(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    label: str = request.param
    return unpacked(label, tmp_path_factory.mktemp(label)).rename(
        tmp_path_factory.mktemp("trees") / label
    )


@pytest.mark.parametrize("damage", DAMAGES)
def test_tools_and_brokers_say_what_is_wrong(
    tree: Path, damage: Callable[[Path, Random], None], tmp_path: Path
) -> None:
    for number in range(TIMES):
        dice = Random(f"{tree.name} {damage.__name__} {number}")
        root = tmp_path / str(number)
        shutil.copytree(tree, root)
        kind = ("consumequeue", "")[number]
        path = dice.choice(sorted(one for one in (root / kind).rglob("*") if one.is_file()))
        damage(path, dice)
        before = tree_digest(root)
        for command in ("inspect", "verify", "export"):
            output = tmp_path / "out.jsonl" if command == "export" else None
            said = io.StringIO()
            with redirect_stdout(said), redirect_stderr(said):
                request = Request(command, root, configuration(tree.name), output=output)
                status = run(request)
            assert status in {0, 1}, path
            assert status == 0 or said.getvalue().strip(), path
        assert tree_digest(root) == before, path
        assert opened_or_told(root, tree.name), path


def opened_or_told(root: Path, label: str) -> bool:
    """Open a store as a broker does; tell whether it could be closed again, or said why not."""
    try:
        store = message_store(root, configuration(label))
        store.open(os.getpid())
    except (GantryError, OSError) as error:
        return bool(str(error))
    return store.close()
