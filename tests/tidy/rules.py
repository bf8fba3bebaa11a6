"""Rules of the house that no linter knows. Each takes a file and yields what is wrong with it.

`test_rules.py` runs every rule over the tree, and over bad and good samples, so that none of them
can pass by doing nothing.
"""

from __future__ import annotations

import ast
import re
import subprocess
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]

Function = ast.FunctionDef | ast.AsyncFunctionDef

MODULE_LINES_MAX = 500
FUNCTION_LINES_MAX = 70
"""Without the docstring."""

GRAB_BAG = re.compile(r"_*(?:utils?|common|misc|helpers?|managers?|impl)")

PROGRAM_PARTS = ("src/gantrymq/cli/", "src/gantrymq/testing/", "src/gantrymq/spark/launch/")
"""Parts that are no server: they may print and start programs."""

CODE_FROM_DATA = "data from outside must not run code"
CLOCK = "time comes in through gantrymq.clock"
CHILDREN = "the server starts no programs"

BANNED_IMPORTS = {
    "pickle": CODE_FROM_DATA, "marshal": CODE_FROM_DATA, "shelve": CODE_FROM_DATA, "time": CLOCK,
}  # fmt: skip
BANNED_CALLS = {
    "eval": CODE_FROM_DATA,
    "exec": CODE_FROM_DATA,
    "yaml.load": CODE_FROM_DATA,
    "yaml.unsafe_load": CODE_FROM_DATA,
    "yaml.full_load": CODE_FROM_DATA,
    "datetime.now": CLOCK,
    "datetime.utcnow": CLOCK,
    "datetime.datetime.now": CLOCK,
    "datetime.datetime.utcnow": CLOCK,
}
BANNED_IN_SERVER_IMPORTS = {"subprocess": CHILDREN}
BANNED_IN_SERVER_CALLS = {
    "print": "library code does not print",
    "os.system": CHILDREN,
    "os.popen": CHILDREN,
    "os.fork": CHILDREN,
    "asyncio.create_subprocess_exec": CHILDREN,
    "asyncio.create_subprocess_shell": CHILDREN,
}

# The brackets keep these from finding themselves.
UNFINISHED = re.compile(r"\b(?:T[O]DO|F[I]XME|H[A]CK|X[X]X)\b(?!\s*\(#\d+\))")
MACHINE_PATH = re.compile(r"(?<![\w.$}>~])/(?:root|home|Users|work)/\w")
REGISTRY = re.compile(
    r"pypi\.org|pythonhosted\.org|registry\.npmjs|proxy\.golang\.org|repo1?\.maven\.|"
    r"deb\.debian\.org|--(?:extra-)?index[-]url|--find[-]links|PIP_IND[E]X",
    re.IGNORECASE,
)

RECORDED = "tests/golden/"
"""What another system wrote is kept as it was."""
NOT_OURS = frozenset({".git", ".venv", "build", "dist", "__pycache__"})
TEXT_SUFFIXES = frozenset({
    "", ".c", ".cfg", ".css", ".html", ".ini", ".js", ".json", ".lock", ".md", ".pxd", ".pxi",
    ".py", ".pyi", ".pyx", ".sh", ".toml", ".txt", ".yaml", ".yml",
})  # fmt: skip


@dataclass(frozen=True)
class Source:
    """A file of the tree: its path from the root, with slashes, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Return the syntax tree of a Python file."""
        return ast.parse(self.text)

    @property
    def is_python(self) -> bool:
        """Say whether `tree` may be asked for."""
        return self.path.endswith(".py")

    @property
    def is_module(self) -> bool:
        """Say whether this is a Python module of the package."""
        return self.is_python and self.path.startswith("src/")

    @property
    def is_test(self) -> bool:
        """Say whether pytest looks for tests here."""
        return re.fullmatch(r"tests/(?:.*/)?test_\w+\.py", self.path) is not None

    @property
    def name(self) -> str:
        """Return the last part of the path without its suffix."""
        return Path(self.path).stem


def tracked_sources() -> list[Source]:
    """Return the text files of the project: what git has or would take; without git, all."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    try:
        listed = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout
        names = set(filter(None, listed.split("\0")))
    except (OSError, subprocess.CalledProcessError):
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*"))
        names = {path.as_posix() for path in found if not NOT_OURS.intersection(path.parts)}
    paths = [ROOT / name for name in sorted(names) if not name.startswith(RECORDED)]
    return [
        Source(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
        for path in paths
        if path.suffix in TEXT_SUFFIXES and path.is_file()
    ]


def module_length(source: Source) -> Iterator[str]:
    """A module of the package that nobody can keep in mind is two modules."""
    lines = source.text.count("\n")
    if source.path.startswith("src/") and lines > MODULE_LINES_MAX:
        yield f"{lines} lines; at most {MODULE_LINES_MAX}"


def function_length(source: Source) -> Iterator[str]:
    """The same for a function, its docstring not counted. Tests may tell long stories."""
    if not source.is_python or source.path.startswith("tests/"):
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            doc = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) else 0  # type: ignore[operator]
            lines = node.end_lineno - node.lineno + 1 - doc  # type: ignore[operator]
            if lines > FUNCTION_LINES_MAX:
                yield f"line {node.lineno}: {node.name} has {lines}; at most {FUNCTION_LINES_MAX}"


def _dotted(node: ast.expr) -> str:
    """Return `os.system` for the expression that says so, and "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := _dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""


def banned_calls(source: Source) -> Iterator[str]:
    """What a server must not do, or must do in one place."""
    if not source.is_module or source.path == "src/gantrymq/clock.py":
        return
    imports, calls = dict(BANNED_IMPORTS), dict(BANNED_CALLS)
    if not source.path.startswith(PROGRAM_PARTS):
        imports |= BANNED_IN_SERVER_IMPORTS
        calls |= BANNED_IN_SERVER_CALLS
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            used = [alias.name.partition(".")[0] for alias in node.names]
            reasons = imports
        elif isinstance(node, ast.ImportFrom):
            used = [(node.module or "").partition(".")[0]]
            used += [f"{node.module}.{alias.name}" for alias in node.names]
            reasons = imports | calls
        elif isinstance(node, ast.Call):
            used, reasons = [_dotted(node.func)], calls
        else:
            continue
        yield from (
            f"line {node.lineno}: {name}: {reasons[name]}" for name in used if name in reasons
        )


def grab_bags(source: Source) -> Iterator[str]:
    """A module is named after the thing in it."""
    if source.path.endswith((".py", ".pyx", ".pxi")):
        for part in Path(source.path).with_suffix("").parts:
            if GRAB_BAG.fullmatch(part):
                yield f"{part} says nothing about what is in it"


def unfinished(source: Source) -> Iterator[str]:
    """What is left to do has an issue: TO-DO (#123) is allowed, without the hyphen."""
    yield from _lines_with(UNFINISHED, source, "unfinished, and no issue says so")


def machine_paths(source: Source) -> Iterator[str]:
    """Nothing works only on the machine it was written on."""
    yield from _lines_with(MACHINE_PATH, source, "a path of one machine")


def registries(source: Source) -> Iterator[str]:
    """Where packages come from is the user's choice."""
    yield from _lines_with(REGISTRY, source, "an address of a package registry")


def _lines_with(pattern: re.Pattern[str], source: Source, why: str) -> Iterator[str]:
    for number, line in enumerate(source.text.splitlines(), 1):
        if pattern.search(line):
            yield f"line {number}: {why}"


def module_docstring(source: Source) -> Iterator[str]:
    """Every module says what it is for; of a test its name may be enough."""
    if source.is_python and not source.is_test and not ast.get_docstring(source.tree):
        yield "no docstring"


def assertions(source: Source) -> Iterator[str]:
    """A test that cannot fail is not one; nor is a state machine."""
    if not source.is_test:
        return
    asserting = _asserting(source.tree, _from_support(source.tree))
    for node in ast.walk(source.tree):
        if isinstance(node, Function) and node.name.startswith("test_"):
            if not (_asserts(node) or asserting & _called(node)):
                yield f"line {node.lineno}: {node.name} asserts nothing"
        elif _is_state_machine(node) and not (_asserts(node) or asserting & _called(node)):
            yield f"line {node.lineno}: no rule of {node.name} asserts anything"


def _asserting(tree: ast.AST, known: frozenset[str] = frozenset()) -> frozenset[str]:
    """Return the names of functions that assert, or call one that does; `known` are such ones."""
    functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
    found = known.union(node.name for node in functions if _asserts(node))
    while True:
        callers = found.union(node.name for node in functions if found & _called(node))
        if callers == found:
            return found
        found = callers


def _from_support(tree: ast.AST) -> frozenset[str]:
    """Return the asserting functions that come with what is imported from tests/support."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("support."):
            path = ROOT.joinpath("tests", *str(node.module).split(".")).with_suffix(".py")
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            names = {alias.name for alias in node.names}
            found |= _asserting_parts(text, frozenset(names))
    return frozenset(found)


@cache
def _asserting_parts(text: str, names: frozenset[str]) -> frozenset[str]:
    """Return which of these functions assert, and which methods of these classes."""
    tree = ast.parse(text)
    asserting = _asserting(tree)
    parts = (part for part in tree.body if getattr(part, "name", None) in names)
    return asserting.intersection(
        node.name for part in parts for node in ast.walk(part) if isinstance(node, Function)
    )


def _is_state_machine(node: ast.AST) -> TypeGuard[ast.ClassDef]:
    """Say whether this is a class of rules that hypothesis runs as a test."""
    return isinstance(node, ast.ClassDef) and any(
        _dotted(base).endswith("RuleBasedStateMachine") for base in node.bases
    )


def _asserts(function: ast.AST) -> bool:
    """Say whether a function itself can find something wrong.

    That is `assert` of something, `pytest.raises` and what is like it, or the `check` method of an
    object that compares. That no error comes up is not enough, nor that only certain ones do.
    """
    for node in ast.walk(function):
        if isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant):
            return True
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if _dotted(node.func) in {"pytest.raises", "pytest.warns", "pytest.fail"}:
                return True
            if node.func.attr == "check":
                return True
    return False


def _called(function: ast.AST) -> set[str]:
    """Return the last names of what a function calls: `raises` for `pytest.raises(...)`."""
    calls = (node.func for node in ast.walk(function) if isinstance(node, ast.Call))
    return {
        call.attr if isinstance(call, ast.Attribute) else call.id
        for call in calls
        if isinstance(call, ast.Attribute | ast.Name)
    }


RULES = (
    module_length, function_length, banned_calls, grab_bags, unfinished, machine_paths, registries,
    module_docstring, assertions,
)  # fmt: skip


def changelog_problem(changelog: str, version: str) -> str | None:
    """Return what is wrong with the change log of this version, or None."""
    heading = re.compile(
        rf"^## \[{re.escape(version)}\] - (?:unreleased|\d{{4}}-\d\d-\d\d)$", re.MULTILINE
    )
    if not heading.search(changelog):
        return f"no heading `## [{version}] - unreleased`, or with a date"
    return None


def unreached(modules: set[str], imported: set[str]) -> set[str]:
    """Return the modules that nothing imports: dead ones. A package counts with what is in it."""
    reached = {name for name in modules if name in imported}
    reached |= {name for name in modules if any(other.startswith(f"{name}.") for other in imported)}
    return modules - reached
