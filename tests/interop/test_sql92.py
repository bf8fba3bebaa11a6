"""Apache RocketMQ's own filter and ours say the same of the same expressions and messages."""

from __future__ import annotations

import base64
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from gantrymq.broker.filter.bloom import BloomFilter
from gantrymq.broker.filter.compiled import compile_filter
from gantrymq.broker.filter.errors import FilterError, NotComparable
from support import apache, tools
from support.filter_cases import CASES, NEW_IN_5, made_up

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = [
    pytest.mark.tool("java"),
    pytest.mark.tool("javac"),  # it compiles the program that asks
    pytest.mark.tool("mvn"),
]

PROBE = apache.POM.with_name("FilterProbe.java")
PROBE_SECONDS_MAX = 120
MADE_UP = 6000
WORDS = {True: "TRUE", False: "FALSE", None: "NULL"}


def ask(version: str, questions: list[str]) -> list[str]:
    """Return Apache's answers."""
    command = [tools.path("java"), *apache.QUICK_START, "-cp", apache.fetch(version), str(PROBE)]
    done = subprocess.run(
        command,
        input="\n".join([*questions, ""]),
        capture_output=True,
        text=True,
        check=False,
        timeout=PROBE_SECONDS_MAX,
    )
    assert done.returncode == 0, done.stderr
    answers = done.stdout.splitlines()
    assert len(answers) == len(questions)
    return answers


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def about(expression: str, properties: Mapping[str, str]) -> str:
    """Return the question what an expression says of a message."""
    texts = [expression, *(text for entry in properties.items() for text in entry)]
    return " ".join(["sql", *map(encoded, texts)])


def ours(expression: str, properties: Mapping[str, str]) -> str:
    try:
        return WORDS[compile_filter(expression).evaluate(properties)]
    except FilterError:
        return "REFUSED"
    except NotComparable:
        return "ERROR"


def test_the_table_is_true(apache_version: str) -> None:
    cases = [case for case in CASES if case.is_for_4 or not apache_version.startswith("4.")]
    assert len(cases) > 450
    answers = ask(apache_version, [about(case.expression, case.properties) for case in cases])
    wrong = [(case, said) for case, said in zip(cases, answers, strict=True) if case[2] != said]
    assert wrong == []


def test_made_up_expressions(apache_version: str) -> None:
    cases = [
        (expression, properties)
        for expression, properties in made_up(seed=92, count=MADE_UP)
        if not apache_version.startswith("4.")
        or not any(word in expression.upper() for word in NEW_IN_5)
    ]
    answers = ask(apache_version, [about(*case) for case in cases])
    counts = Counter(answers)
    assert counts.keys() == {"TRUE", "FALSE", "NULL", "ERROR", "REFUSED"}
    assert min(counts.values()) > 100
    differ = [
        (case, said) for case, said in zip(cases, answers, strict=True) if ours(*case) != said
    ]
    assert differ == []


def test_bits(apache_version: str) -> None:
    texts = ["G1#TopicTest", "", "a", "cg#主题", *("x" * n + "#" + "y" * n for n in range(40))]
    settings = [(20, 32), (1, 1), (99, 1), (50, 64), (25, 32), (10, 128), (33, 7), (5, 1024)]
    cases = [(percent, expected, text) for percent, expected in settings for text in texts]
    answers = ask(apache_version, [f"bloom {p} {n} {encoded(text)}" for p, n, text in cases])
    for (percent, expected, text), answer in zip(cases, answers, strict=True):
        bloom = BloomFilter.for_consumers(percent, expected)
        found = [bloom.bit_count, *bloom.positions(text)]
        assert " ".join(map(str, found)) == answer, (percent, expected, text)


def test_how_long_bitmaps_are(apache_version: str) -> None:
    cases = [(percent, n) for percent in range(1, 100) for n in (1, 2, 3, 8, 31, 32, 33, 100, 999)]
    answers = ask(apache_version, [f"bloom {percent} {n} {encoded('x')}" for percent, n in cases])
    for (percent, expected), answer in zip(cases, answers, strict=True):
        bloom = BloomFilter.for_consumers(percent, expected)
        assert answer.split()[0] == str(bloom.bit_count), (percent, expected)
        assert len(answer.split()) - 1 == bloom.hash_count, (percent, expected)
