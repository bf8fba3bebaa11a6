"""Which part of gantrymq may import which, and a check of it that reads the sources.

A part is a package or module directly under `gantrymq`. The order, lowest first:

    errors, limits, clock, version
    kernel, model < wire < store < broker < transport < cluster < namesrv < metrics < node

A part imports itself and lower ones, except where `MAY_USE` says less: `broker` knows nothing of
sockets, `transport` nothing of brokers, and what stands beside the order (client, cli, dashboard,
spark, security) names what it uses. Imports for type checkers count: a type is knowledge too.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BASE = frozenset({"errors", "limits", "clock", "version"})
"""Parts that everything may use and that use nothing but each other."""

ANYTHING = frozenset({""})

OFFLINE_TOOLS = frozenset(
    f"store.{name}"
    for name in ("export", "files", "overview", "reader", "rebuild", "shape", "verify")
)
"""What the command line may use of the store: that which works on a directory."""

STORE_FILES = frozenset(
    f"store.{name}"
    for name in (
        "checkpoint", "columns", "disk", "errors", "files", "index", "index_file",
        "log_directories", "process_lock", "queue_table", "reader", "recovery", "retention",
        "settings", "shape", "snapshot", "verify",
    )
)  # fmt: skip
"""What Spark may use of it: files, what is built of them, rules; never a store that runs."""

MAY_USE: dict[str, frozenset[str]] = {
    "kernel": frozenset(),
    "model": frozenset(),
    "wire": frozenset({"kernel", "model"}),
    "security": frozenset({"model", "wire"}),
    "store": frozenset({"kernel", "model", "wire"}),
    "broker": frozenset({"kernel", "model", "wire", "store"}),
    "transport": frozenset({"kernel", "model", "wire"}),
    "cluster": frozenset({"kernel", "model", "wire", "store", "broker", "transport"}),
    "namesrv": frozenset({"kernel", "model", "wire"}),
    "proxy": frozenset({"kernel", "model", "wire", "store", "broker", "transport"}),
    "metrics": frozenset(
        {"kernel", "model", "wire", "store", "broker", "transport", "cluster", "namesrv"}
    ),
    "node": frozenset(
        {
            "kernel",
            "model",
            "wire",
            "store",
            "broker",
            "transport",
            "cluster",
            "namesrv",
            "proxy",
            "metrics",
            "security",
        }
    ),
    "client": frozenset({"model", "wire", "transport"}),
    "admin": frozenset({"model", "wire", "transport", "client"}),
    "blocking": frozenset({"model", "client"}),
    "kombu": frozenset({"model", "wire", "client", "blocking"}),
    "faststream": frozenset({"model", "wire", "client"}),
    "otel": frozenset({"model", "client"}),
    "cli": frozenset(
        {
            "model",
            "wire",
            "client",
            "admin",
            "node",
            "security",
            "dashboard",
            "kernel",
            "spark.jobs",
            "spark.launch",
            *OFFLINE_TOOLS,
        }
    ),
    "dashboard": frozenset(
        {"model", "wire", "client", "admin", "spark.jobs", "spark.report.values"}
    ),
    "spark": frozenset(
        {
            "kernel",
            "model",
            "wire",
            "client",
            "blocking",
            "broker.filter",
            "transport.addresses",
            *STORE_FILES,
        }
    ),
    "testing": ANYTHING,
    "__init__": frozenset({"client", "model"}),  # public names, imported when they are used
    "__main__": frozenset({"cli"}),
}
"""Part -> what it may import beside `BASE` and itself; `store.reader` allows that module alone."""

NO_SOCKETS = frozenset({"kernel", "model", "wire", "store", "broker"})
"""Parts in which a request is a value: the network belongs to `transport`."""

SOCKET_MODULES = frozenset({"socket", "ssl", "selectors", "socketserver", "asyncio.streams"})


class Import(NamedTuple):
    """One import statement's module, as an absolute name."""

    line: int
    module: str


def part_of(module: str) -> str:
    """Return the part that `gantrymq.wire.frame` belongs to: `wire`."""
    return module.split(".")[1] if "." in module else "__init__"


def module_name(path: Path, source_root: Path) -> str:
    """Return the dotted name of a source file below `source_root`."""
    parts = path.relative_to(source_root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, source_root: Path) -> list[Import]:
    """Return every import of a Python or Cython file, wherever in the file it stands."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return list(_cython_imports(text))
    package = module_name(path, source_root)
    if path.name != "__init__.py":
        package = package.rpartition(".")[0]
    return list(_python_imports(ast.parse(text), package))


def _python_imports(tree: ast.Module, package: str) -> Iterator[Import]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                module = ".".join([*above, module] if module else above)
            # `from gantrymq.store import reader` may name a module or a value; both readings count.
            for alias in node.names:
                yield Import(node.lineno, f"{module}.{alias.name}")


def _cython_imports(text: str) -> Iterator[Import]:
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.match(r"\s*from\s+([\w.]+)\s+c?import\s+(\w+)", line):
            yield Import(number, f"{found[1]}.{found[2]}")
        elif found := re.match(r"\s*c?import\s+([\w.]+)", line):
            yield Import(number, found[1])


def _is_or_is_in(module: str, name: str) -> bool:
    return not name or module == name or module.startswith(f"{name}.")


def problem_with(importer: str, imported: str) -> str | None:
    """Return why the module `importer` may not import `imported`, or None."""
    part = part_of(importer)
    if part in NO_SOCKETS and any(_is_or_is_in(imported, name) for name in SOCKET_MODULES):
        return f"{part} knows no sockets, {imported} is one"
    if imported.partition(".")[0] != "gantrymq":
        return None
    used = imported.removeprefix("gantrymq").removeprefix(".")
    used_part = used.partition(".")[0]
    if used_part in {"", "__version__", part} or used_part in BASE:
        return None
    if part not in MAY_USE and part not in BASE:
        return f"{part} is not in the table of layers (tests/tidy/layers.py)"
    if any(_is_or_is_in(used, name) for name in MAY_USE.get(part, ())):
        return None
    return f"{part} may not use {used}"


def violations(source_root: Path) -> list[str]:
    """Return every import under `source_root/gantrymq` that goes against the layers."""
    found = []
    for path in source_files(source_root):
        importer = module_name(path, source_root)
        for line, module in imports_of(path, source_root):
            if why := problem_with(importer, module):
                found.append(f"{path.relative_to(source_root)}:{line}: {why}")
    return found


def source_files(source_root: Path) -> list[Path]:
    """Return the Python and Cython files of the package."""
    suffixes = {".py", ".pyi", ".pyx", ".pxi", ".pxd"}
    files = (source_root / "gantrymq").rglob("*")
    return sorted(path for path in files if path.suffix in suffixes)
