"""The rules of the house hold for the whole tree, and each one is seen to find what it is for."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest

from gantrymq.version import VERSION
from tidy import layers, rules
from tidy.rules import ROOT, Source

Rule = Callable[[Source], Iterator[str]]

SOURCES = rules.tracked_sources()
MODULE = "src/gantrymq/store/flush.py"
TEST = "tests/unit/test_flush.py"
IMPORTED = "from support.store_world import World\n"
"""A class whose `crash` asserts."""


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_the_tree_keeps_the_rule(rule: Rule) -> None:
    problems = [f"{source.path}: {what}" for source in SOURCES for what in rule(source)]
    assert problems == []


def test_the_tree_is_seen() -> None:
    paths = {source.path for source in SOURCES}
    assert {"Makefile", "README.md", "pyproject.toml", "requirements.lock", ".ci/run"} <= paths
    assert {
        "src/gantrymq/clock.py",
        "src/gantrymq/kernel/_native.pyx",
        "tests/conftest.py",
    } <= paths
    assert not any(path.startswith((".venv/", "tests/golden/")) for path in paths)


def function(name: str, body_lines: int) -> str:
    """Return a function of so many lines, its first one not counted."""
    return f'def {name}():\n    """Docstring."""\n' + "    x = 1\n" * body_lines


BAD: list[tuple[Rule, str, str]] = [
    (rules.module_length, MODULE, "x = 1\n" * 501),
    (rules.module_length, "src/gantrymq/kernel/_native.pyx", "x = 1\n" * 501),
    (rules.function_length, MODULE, function("long", 70)),
    (rules.function_length, "fuzz/run.py", "class A:\n  async def f():\n" + "    y()\n" * 70),
    (rules.banned_calls, MODULE, "import time\n"),
    (rules.banned_calls, MODULE, "from time import monotonic\n"),
    (rules.banned_calls, MODULE, "from datetime import datetime\nx = datetime.now()\n"),
    (rules.banned_calls, MODULE, "def f():\n    print('x')\n"),
    (rules.banned_calls, MODULE, "import pickle\n"),
    (rules.banned_calls, MODULE, "from pickle import loads\n"),
    (rules.banned_calls, MODULE, "x = eval('1')\n"),
    (rules.banned_calls, MODULE, "exec('1')\n"),
    (rules.banned_calls, MODULE, "import subprocess\n"),
    (rules.banned_calls, MODULE, "import os\nos.system('ls')\n"),
    (rules.banned_calls, MODULE, "from os import system\n"),
    (rules.banned_calls, MODULE, "import yaml\nyaml.load('x')\n"),
    (rules.banned_calls, "src/gantrymq/cli/main.py", "import time\n"),
    (rules.grab_bags, "src/gantrymq/store/utils.py", ""),
    (rules.grab_bags, "src/gantrymq/common/frame.py", ""),
    (rules.grab_bags, "tests/support/helpers.py", ""),
    (rules.unfinished, "docs/x.md", "T" + "ODO: more\n"),
    (rules.unfinished, MODULE, "# FIX" + "ME later\n"),
    (rules.machine_paths, "Makefile", "cp x /" + "root/x\n"),
    (rules.machine_paths, "docs/x.md", "see `/" + "home/someone/file`\n"),
    (rules.registries, "requirements.lock", "--index" + "-url x\n"),
    (rules.registries, "docs/x.md", "https://pypi" + ".org/simple\n"),
    (rules.module_docstring, MODULE, "x = 1\n"),
    (rules.assertions, TEST, "def test_a():\n    run()\n"),
    (rules.assertions, TEST, "class TestA:\n    async def test_b(self):\n        await run()\n"),
    (rules.assertions, TEST, "def f():\n    g()\ndef g():\n    f()\ndef test_a():\n    f()\n"),
    (rules.assertions, TEST, f"{IMPORTED}def test_a():\n    World().shape()\n"),
    (rules.assertions, TEST, "def test_a():\n    World().crash()\n"),
    (rules.assertions, TEST, "def test_a():\n    with suppress(E):\n        run()\n"),
    (rules.assertions, TEST, "def test_a():\n    try:\n        f()\n    except E:\n        pass\n"),
    (rules.assertions, TEST, "def test_a():\n    check_it()\n    expect_it()\n    assert True\n"),
    (rules.assertions, TEST, "class A(RuleBasedStateMachine):\n  @rule()\n  def f(self): g()\n"),
    (rules.assertions, TEST, "def test_a():\n  assert x\nclass A:\n  def test_a(self): g()\n"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "path", "text"), BAD)
def test_a_rule_finds_what_it_is_for(rule: Rule, path: str, text: str) -> None:
    assert len(list(rule(Source(path, text)))) == 1


GOOD: list[tuple[Rule, str, str]] = [
    (rules.module_length, MODULE, "x = 1\n" * 500),
    (rules.module_length, TEST, "x = 1\n" * 501),
    (rules.function_length, MODULE, function("long", 69)),
    (rules.function_length, TEST, function("long", 100)),
    (rules.banned_calls, "src/gantrymq/clock.py", "import time\n"),
    (rules.banned_calls, MODULE, "import datetime, timeit\nfootprint(1)\nclock.time()\n"),
    (rules.banned_calls, "src/gantrymq/cli/main.py", "import subprocess\nprint('x')\n"),
    (rules.banned_calls, TEST, "import time\n"),
    (rules.grab_bags, "src/gantrymq/store/commit_log.py", ""),
    (rules.unfinished, MODULE, "# T" + "ODO (#12): more; SCHEDULE_TOPIC_XXXX\n"),
    (rules.machine_paths, MODULE, "x = '../root/x'  # and /usr/bin/x, $HOME/work/x\n"),
    (rules.registries, "docs/x.md", "on PyPI\n"),
    (rules.module_docstring, MODULE, '"""What it is."""\n'),
    (rules.module_docstring, TEST, "x = 1\n"),
    (rules.assertions, TEST, "def test_a():\n    with pytest.raises(E):\n        run()\n"),
    (rules.assertions, TEST, "def test_a():\n    model.check(run())\n"),
    (rules.assertions, TEST, "class A(RuleBasedStateMachine):\n  def f(self):\n    assert x\n"),
    (rules.assertions, TEST, "def f():\n    assert x\ndef g():\n    f()\ndef test_a():\n    g()\n"),
    (rules.assertions, TEST, f"{IMPORTED}def test_a():\n    World().crash()\n"),
    (rules.assertions, "tests/support/golden.py", "def test_a():\n    run()\n"),
]


@pytest.mark.parametrize(("rule", "path", "text"), GOOD)
def test_a_rule_finds_nothing_else(rule: Rule, path: str, text: str) -> None:
    assert list(rule(Source(path, text))) == []


def test_every_rule_has_samples() -> None:
    assert {rule for rule, _, _ in BAD} == set(rules.RULES)
    assert {rule for rule, _, _ in GOOD} == set(rules.RULES)


def test_the_changelog_has_this_version() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert rules.changelog_problem(text, VERSION) is None


@pytest.mark.parametrize("text", ["", "## [0.1.1] - unreleased\n", "## 0.1.0\n", "see [0.1.0]\n"])
def test_a_changelog_without_it_is_found(text: str) -> None:
    assert rules.changelog_problem(text, "0.1.0") is not None


def test_no_module_is_dead() -> None:
    source_root = ROOT / "src"
    files = layers.source_files(source_root)
    modules = {layers.module_name(path, source_root) for path in files if path.suffix == ".py"}
    readers = itertools.chain(files, (ROOT / "tests").rglob("*.py"), (ROOT / "fuzz").rglob("*.py"))
    imported = {"gantrymq.__main__"}
    for path in readers:
        base = source_root if path.is_relative_to(source_root) else ROOT
        names = {found.module for found in layers.imports_of(path, base)}
        imported |= names | {name.rpartition(".")[0] for name in names}
    assert rules.unreached(modules, imported) == set()


def test_a_dead_module_is_found() -> None:
    modules = {"gantrymq", "gantrymq.wire", "gantrymq.wire.frame", "gantrymq.wire.old"}
    assert rules.unreached(modules, {"gantrymq.wire.frame"}) == {"gantrymq.wire.old"}
