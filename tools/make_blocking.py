"""Writes the blocking clients, `src/gantrymq/blocking/`, from the asyncio ones; `make blocking`.

The sources of the asyncio classes are read, not imported: signatures, defaults and docstrings are
taken over as they stand, and every method becomes one that hands its arguments to the asyncio
client on its thread and waits (`blocking/base.py`). A public method of a kind that is not known
here is an error, so that nothing is left out silently.

    python tools/make_blocking.py            write
    python tools/make_blocking.py --check    say whether the files are what this program makes
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[1]
CLIENT: Final = ROOT / "src" / "gantrymq" / "client"
BLOCKING: Final = ROOT / "src" / "gantrymq" / "blocking"


class Twin(NamedTuple):
    """A class, the module that has it, and what its kind is called in sentences."""

    module: str
    name: str
    summary: str


TWINS: Final = (
    Twin("producer", "Producer", "Sends messages."),
    Twin("push_consumer", "PushConsumer", "A member of a consumer group."),
    Twin("pull_consumer", "PullConsumer", "Reads queues at offsets."),
)
ITERATES: Final = {"Iteration": "ReceivedMessage"}
"""What an asynchronous loop is over, by the type that `__aiter__` returns."""
ATTRIBUTES: Final = {"group": "str", "options": "ConsumeOptions"}
"""Public attributes that `__init__` sets, with their types."""
EXTRA: Final = {
    "ReceivedMessage": "gantrymq.client.received",
    "ConsumeOptions": "gantrymq.client.consuming.options",
}
IN_BASE: Final = frozenset({"__aenter__", "__aexit__"})
WORDS: Final = (
    (r"`async with`", "`with`"),
    (r"\basync with\b", "with"),
    (r"\basync for\b", "for"),
    (r"\bawait ", ""),
    (
        r"It may be a coroutine function; a\n(\s*)plain one runs in a thread\.",
        r"It runs in a\n\1thread.",
    ),
)
"""Asyncio's words in docstrings, and what a blocking program calls the same."""
HEAD: Final = '''"""The blocking twin of `gantrymq.client.{module}`.

Made by `make blocking` from the asyncio class: change that one, not this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gantrymq.blocking.base import Blocking, Messages
from gantrymq.client.{module} import {name} as Async{name}
{runtime}
if TYPE_CHECKING:
    import ssl as tls
{typing}

class {name}(Blocking[Async{name}]):
    """{summary} Used from any thread, from several at once."""

'''


class Source:
    """The module of an asyncio class."""

    def __init__(self, twin: Twin) -> None:
        self.twin = twin
        tree = ast.parse((CLIENT / f"{twin.module}.py").read_text(encoding="utf-8"))
        self.imports = _imports(tree)
        self.own = _definitions(tree)
        self.body = next(
            node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == twin.name
        ).body

    def import_line(self, name: str) -> str | None:
        """Return the import of a name that a signature uses; None for what is built in."""
        if name in self.imports:
            return self.imports[name]
        if name in self.own:
            return f"from gantrymq.client.{self.twin.module} import {name}"
        if name in EXTRA:
            return f"from {EXTRA[name]} import {name}"
        return None


def _imports(tree: ast.Module) -> dict[str, str]:
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                found[alias.asname or alias.name] = (
                    f"from {node.module} import {ast.unparse(alias)}"
                )
        elif isinstance(node, ast.Import):
            for alias in node.names:
                found[alias.asname or alias.name] = f"import {ast.unparse(alias)}"
    return found


def _definitions(tree: ast.Module) -> set[str]:
    found = set()
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Assign):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
    return found


class Writer:
    """Writes the twin of one class."""

    def __init__(self, twin: Twin) -> None:
        self._source = Source(twin)
        self._twin = twin
        self._typing: set[str] = set()
        self._runtime: set[str] = set()

    def text(self) -> str:
        """Return the module."""
        body = "".join(self._member(node) for node in self._source.body)
        head = HEAD.format(
            module=self._twin.module,
            name=self._twin.name,
            summary=self._twin.summary,
            runtime="".join(f"{line}\n" for line in sorted(self._runtime)),
            typing="".join(f"    {line}\n" for line in sorted(self._typing - self._runtime)),
        )
        return head + body

    def _member(self, node: ast.stmt) -> str:  # noqa: PLR0911 - one for each kind of method
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return ""
        name = node.name
        if name in IN_BASE or (name.startswith("_") and not name.startswith("__")):
            return ""
        if name == "__init__":
            return self._init(node)
        if name == "__aiter__":
            item = ITERATES[ast.unparse(node.returns) if node.returns else ""]
            self._names(ast.parse(item), self._typing)
            return self._method(
                "__iter__",
                node,
                "return self._iterate(self._client.__aiter__)",
                f"Messages[{item}]",
            )
        if name.startswith("__"):
            raise SystemExit(
                f"{self._twin.name}.{name}: say in tools/make_blocking.py what it becomes"
            )
        call = f"self._client.{name}({_passed(node.args)})"
        if name in {"start", "close"}:
            return self._method(
                name, node, f"self._{'begin' if name == 'start' else 'end'}({call})"
            )
        if isinstance(node, ast.AsyncFunctionDef):
            return self._method(name, node, f"return self._call({call})")
        if any(ast.unparse(each) == "property" for each in node.decorator_list):
            get = f"return self._do(lambda: self._client.{name})"
            return "    @property\n" + self._method(name, node, get)
        return self._method(name, node, f"return self._do(lambda: {call})")

    def _init(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
        made = f"super().__init__(Async{self._twin.name}({_passed(node.args)}))"
        parts = [self._method("__init__", node, made)]
        for each in ast.walk(node):
            targets = each.targets if isinstance(each, ast.Assign) else []
            parts += [
                self._attribute(target.attr)
                for target in targets
                if isinstance(target, ast.Attribute) and not target.attr.startswith("_")
            ]
        return "".join(parts)

    def _attribute(self, name: str) -> str:
        if name not in ATTRIBUTES:
            raise SystemExit(f"{self._twin.name}.{name}: give its type in tools/make_blocking.py")
        self._names(ast.parse(ATTRIBUTES[name]), self._typing)
        return (
            f"    @property\n    def {name}(self) -> {ATTRIBUTES[name]}:\n"
            f'        """Return what was given."""\n        return self._client.{name}\n\n'
        )

    def _method(
        self,
        name: str,
        node: ast.FunctionDef | ast.AsyncFunctionDef,
        body: str,
        returns: str | None = None,
    ) -> str:
        arguments = node.args
        for argument in ast.walk(arguments):
            if isinstance(argument, ast.arg) and argument.annotation is not None:
                self._names(argument.annotation, self._typing)
        for default in [*arguments.defaults, *arguments.kw_defaults]:
            if default is not None:
                self._names(default, self._runtime)
        if node.returns is not None and returns is None:
            self._names(node.returns, self._typing)
            returns = ast.unparse(node.returns)
        if returns == "None":
            body = body.removeprefix("return ")
        note = "  # noqa: ANN401" if "Any" in ast.unparse(arguments) and arguments.kwarg else ""
        text = _docstring(node)
        signature = ast.unparse(arguments)
        if note:  # one argument a line, so that the remark stands where it belongs
            signature = _lines(arguments) + note + "\n    "
        return (
            f'    def {name}({signature}) -> {returns}:\n        """{text}"""\n        {body}\n\n'
        )

    def _names(self, node: ast.AST, into: set[str]) -> None:
        for each in ast.walk(node):
            if isinstance(each, ast.Name):
                line = self._source.import_line(each.id)
                if line is not None and line not in {"from typing import Any", "import ssl as tls"}:
                    into.add(line)


def _lines(arguments: ast.arguments) -> str:
    """Return a signature whose last argument, `**settings`, has a line of its own."""
    text = ast.unparse(arguments)
    front, _, last = text.rpartition(", **")
    return f"{front},\n        **{last},"


def _passed(arguments: ast.arguments) -> str:
    """Return the arguments as they are handed on."""
    passed = [argument.arg for argument in [*arguments.posonlyargs, *arguments.args][1:]]
    if arguments.vararg is not None:
        passed.append(f"*{arguments.vararg.arg}")
    passed += [f"{argument.arg}={argument.arg}" for argument in arguments.kwonlyargs]
    if arguments.kwarg is not None:
        passed.append(f"**{arguments.kwarg.arg}")
    return ", ".join(passed)


def _docstring(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    text = ast.get_docstring(node) or ""
    for pattern, word in WORDS:
        text = re.sub(pattern, word, text)
    lines = text.splitlines()
    indented = [lines[0], *(f"        {line}" if line else "" for line in lines[1:])]
    return "\n".join(indented) + ("\n        " if len(lines) > 1 else "")


def made(twin: Twin) -> str:
    """Return the module of a twin, formatted."""
    text = Writer(twin).text()
    target = str(BLOCKING / f"{twin.module}.py")
    for command in (
        ["check", "--fix-only", "--select", "I,F401", "--quiet"],
        ["format", "--quiet"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, "--stdin-filename", target, "-"],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
        )
        if done.returncode:
            raise SystemExit(f"ruff refuses the twin of {twin.name}: {done.stderr}")
        text = done.stdout
    return text


def main() -> int:
    """Write the files, or compare them."""
    stale = []
    for twin in TWINS:
        path, text = BLOCKING / f"{twin.module}.py", made(twin)
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path.name)
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8")
    if "--check" in sys.argv and stale:
        print(f"run `make blocking`: {', '.join(stale)} is not what the asyncio classes make")
        return 1
    print(f"blocking: {', '.join(stale) or 'nothing'} changed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
