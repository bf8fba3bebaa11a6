"""What no server of ours does, looked for in its sources: run code that is data, start programs.

Every mention counts, whether it is called or handed on: an import, an attribute, a name. What is
allowed all the same is listed with its reason, and an entry that nothing needs any more fails.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCE = Path(__file__).parents[2] / "src" / "gantrymq"
SERVER = (
    "broker", "namesrv", "store", "transport", "cluster", "node", "kernel", "wire", "model",
    "metrics", "security", "dashboard", "admin", "client", "clock.py", "errors.py", "limits.py",
    "version.py",
)  # fmt: skip
"""What runs in the process of a server."""
SERVER_COMMANDS = {
    f"cli/{name}.py" for name in ("arguments", "dashboard", "main", "serve", "serving")
} | {"__main__.py"}
"""What starts one, and runs beside it from then on."""
NO_SERVER = {
    "cli": "commands that end; those that start a server are in SERVER_COMMANDS",
    "spark": "runs in Spark's processes, which start Java and pickle on their own",
    "testing": "for the tests of others",
    "blocking": "a client", "kombu": "a client", "faststream": "a client", "otel.py": "a client",
    "__init__.py": "the public names, looked up in a table of its own",
}  # fmt: skip
"""The rest, and why."""

CODE_FROM_DATA = {
    "import pickle", "import cPickle", "import _pickle", "import cloudpickle", "import dill",
    "import joblib", "import shelve", "import marshal", "import jsonpickle", "import runpy",
    "import code", "import codeop", "import imp", "import xml", "eval", "exec", "compile",
    "__import__", "yaml.load", "yaml.load_all", "yaml.unsafe_load", "yaml.full_load", "yaml.Loader",
    "yaml.UnsafeLoader", "yaml.FullLoader", "yaml.CLoader", "import ruamel", "import xmlrpc",
    "import logging.config", "import builtins", "read_pickle", "CodeType", "FunctionType",
    "allow_pickle=", "shell=",
}  # fmt: skip
"""Nowhere in the package."""
PROGRAMS = {
    "import subprocess", "import pty", "import shlex", "import multiprocessing", "import ctypes",
    "import cffi", "import concurrent.futures.process", "os.system", "os.popen", "os.fork",
    "os.forkpty", "os.posix_spawn", "os.posix_spawnp", "create_subprocess_exec",
    "create_subprocess_shell", "subprocess_exec", "subprocess_shell", "import_module",
    "ProcessPoolExecutor", "import _posixsubprocess", "import asyncio.subprocess", "os.startfile",
}  # fmt: skip
"""Nowhere in a server."""
PREFIXES = ("os.exec", "os.spawn")
BUILTINS = {"eval", "exec", "compile"}

ALLOWED = {
    ("kernel/__init__.py", "import_module"): (
        "the compiled kernel, which a wheel may lack; its name stands there"
    ),
    ("transport/loop.py", "import_module"): "uvloop, an extra; its name stands there",
    ("store/files.py", "import ctypes"): (
        "msync and mincore of the C library on the store's own mappings, which Python does not have"
    ),
}
"""File and name to why it is no danger there."""


def mentioned(text: str) -> Iterator[str]:
    """Yield every name that a module imports, reads or calls, as far as it is dotted."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _beginnings(alias.name)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                yield from _beginnings(f"{node.module}.{alias.name}")
                yield f"{node.module}.{alias.name}"
                yield alias.name
        elif isinstance(node, ast.Attribute):
            yield _dotted(node)
            if node.attr not in BUILTINS:  # a method may be called so
                yield node.attr
        elif isinstance(node, ast.keyword) and node.arg is not None:
            yield f"{node.arg}="
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            yield node.id


def _beginnings(module: str) -> Iterator[str]:
    parts = module.split(".")
    yield from (f"import {'.'.join(parts[:count])}" for count in range(1, len(parts) + 1))


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def found_in(text: str, *, server: bool) -> set[str]:
    """Return what a module mentions that it must not."""
    banned = CODE_FROM_DATA | (PROGRAMS if server else set())
    names = set(mentioned(text))
    found = names & banned
    if server:
        found |= {name for name in names if name.startswith(PREFIXES)}
    return found


def package_files(suffix: str) -> list[Path]:
    return sorted(SOURCE.rglob(f"*{suffix}"))


def is_server(path: Path) -> bool:
    place = path.relative_to(SOURCE)
    return place.parts[0] in SERVER or place.as_posix() in SERVER_COMMANDS


def test_every_part_was_thought_about() -> None:
    parts = {path.relative_to(SOURCE).parts[0] for path in package_files(".py")} - {"__main__.py"}
    assert sorted(parts ^ {*SERVER, *NO_SERVER}) == []
    assert all((SOURCE / name).exists() for name in SERVER_COMMANDS)


def test_no_data_becomes_code_and_no_server_starts_a_program() -> None:
    files = package_files(".py")
    assert sum(is_server(path) for path in files) > 250
    found = {
        (path.relative_to(SOURCE).as_posix(), name)
        for path in files
        for name in found_in(path.read_text(encoding="utf-8"), server=is_server(path))
    }
    assert sorted(found - ALLOWED.keys()) == []
    assert sorted(ALLOWED.keys() - found) == [], "allowed, and not needed any more"


def test_the_compiled_kernel_calls_no_program_either() -> None:
    files = [*package_files(".pyx"), *package_files(".pxi"), *package_files(".pxd")]
    assert len(files) > 5
    banned = re.compile(r"\b(?:system|popen|fork|execv\w*|execl\w*|dlopen|eval|exec|pickle)\s*\(")
    assert [
        f"{path.name}: {match[0]}"
        for path in files
        for match in banned.finditer(path.read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import os\nos.system('x')",
        "import os\nrun = os.system",
        "import os\nos.execv('x', [])",
        "import os\nos.spawnlp(1, 'x')",
        "import asyncio\nasyncio.create_subprocess_shell('x')",
        "loop.subprocess_exec(f)",
        "from subprocess import run",
        "import multiprocessing.pool",
        "f = eval",
        "exec('x')",
        "import yaml\nyaml.load(x)",
        "compile(x, '', 'exec')",
        "from importlib import import_module",
        "import xml.etree.ElementTree",
        "subprocess.run('ls', shell=True)",
        "numpy.load(path, allow_pickle=True)",
        "import pandas\npandas.read_pickle(x)",
        "from logging.config import listen",
        "import builtins\nbuiltins.eval(x)",
        "from asyncio import subprocess",
        "import os\nos.posix_spawn('x', [], {})",
    ],
)
def test_the_scan_finds_what_it_looks_for(text: str) -> None:
    assert found_in(text, server=True)


@pytest.mark.parametrize(
    "text",
    [
        "import re\nre.compile('x')",
        "yaml.safe_load(x)",
        "executor = 1",
        "self.system(x)",
        "code = 1",
    ],
)
def test_the_scan_leaves_alone_what_is_harmless(text: str) -> None:
    assert found_in(text, server=True) == set()
