"""The part of YAML that account files are in: what it means, and what it is not."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gantrymq.security.yaml_subset import (
    Mapping,
    Nothing,
    Plain,
    Sequence,
    Text,
    Value,
    WrongYaml,
    parse,
    write,
)


def plain(value: Value) -> Plain:
    """Return a value without lines and quotes."""
    if isinstance(value, Mapping):
        return {name: plain(one) for name, one in value.entries.items()}
    if isinstance(value, Sequence):
        return [plain(one) for one in value.items]
    return value.value if isinstance(value, Text) else None


@pytest.mark.parametrize(
    ("source", "meaning"),
    [
        ("", None),
        ("# nothing\n\n", None),
        ("---\na: 1\n", {"a": "1"}),
        ("a: 1\r\nb: two words\r\n", {"a": "1", "b": "two words"}),
        ("a:\nb: ~\nc: null\n", {"a": None, "b": None, "c": None}),
        ("a: x # comment\nb: x#y\n", {"a": "x", "b": "x#y"}),
        ("a: 'it''s' # comment\n", {"a": "it's"}),
        (r'a: "x\n\"\u00e9\\"', {"a": 'x\n"\u00e9\\'}),
        ("a: ''\n", {"a": ""}),
        ("a: []\nb: {}\n", {"a": [], "b": {}}),
        ("a:\n- 1\n- 2\nb: 3\n", {"a": ["1", "2"], "b": "3"}),
        ("a:\n  - 1\n  # between\n  - 2\n", {"a": ["1", "2"]}),
        ("a:\n  - b: 1\n    c: 2\n  - b: 3\n", {"a": [{"b": "1", "c": "2"}, {"b": "3"}]}),
        ("a:\n  -\n    b: 1\n  - \n", {"a": [{"b": "1"}, None]}),
        ("a:\n- b:\n  - 1\n  c: 2\n", {"a": [{"b": ["1"], "c": "2"}]}),
        ("a:\n- b: 1\n\n  c:\n    - x=PUB|SUB\n", {"a": [{"b": "1", "c": ["x=PUB|SUB"]}]}),
        ("a:\n  - fe80::1\n  - 10.0.*.*\n", {"a": ["fe80::1", "10.0.*.*"]}),
        ("- 1\n- - 2\n  - 3\n", ["1", ["2", "3"]]),
        ("\ufeffa: 1", {"a": "1"}),
        ("a: \t# nothing\n  - 1\n", {"a": ["1"]}),
        ("a:\n  - \t# nothing\n  - 2\n", {"a": [None, "2"]}),
    ],
)
def test_what_it_means(source: str, meaning: Plain) -> None:
    assert plain(parse(source)) == meaning


@pytest.mark.parametrize(
    ("source", "line", "why"),
    [
        ("a: 1\nb: &x 2\n", 2, "anchor"),
        ("a: 1\nb: *x\n", 2, "alias"),
        ("a:\n  - *\n", 2, "quotes"),
        ("a: !!java.net.URL [x]\n", 1, "tag"),
        ("a: |\n  text\n", 1, "block text"),
        ("a: >-\n  text\n", 1, "block text"),
        ("a: [1, 2]\n", 1, "flow list"),
        ("a: {b: 1}\n", 1, "flow map"),
        ("a: @x\n", 1, "reserved"),
        ("%YAML 1.1\n---\na: 1\n", 1, "directive"),
        ("? a\n: 1\n", 1, "several parts"),
        ("a: 1\n<<: b\n", 2, "name: value"),
        ("a: 1\n---\nb: 2\n", 2, "second document"),
        ("a: 1\n...\n", 2, "second document"),
        ("a: 1\na: 2\n", 2, "second time"),
        ("a:\n\tb: 1\n", 2, "tab"),
        ("a: x\ty\n", 1, "tab"),
        ("a: \u00a0 # x\n", 1, "neither a space nor a tab"),
        ("a:\n- \u3000 # x\n", 2, "neither a space nor a tab"),
        ("a: 1\n  b: 2\n", 2, "indented"),
        ("a:\n    b: 1\n  c: 2\n", 3, "indented"),
        ("  a: 1\nb: 2\n", 2, "indented"),
        ("a:\n  - 1\n   - 2\n", 3, "indented"),
        ("a: 1\n- 2\n", 2, "indented"),
        ("a: 'x\n", 1, "not closed"),
        ("a: 'x' y\n", 1, "behind the closing quote"),
        ('a: "\\q"\n', 1, "escape"),
        ('a: "\\ud800"\n', 1, "escape"),
        ("a: b: c\n", 1, "colon"),
        ("a: x\x01\n", 1, "control character"),
        ("just text\nmore\n", 2, "indented"),
        ("a:\n" + "".join(f"{' ' * n}a:\n" for n in range(1, 30)), 18, "inside each other"),
    ],
)
def test_the_rest_of_yaml_is_refused_with_its_line(source: str, line: int, why: str) -> None:
    with pytest.raises(WrongYaml, match=why) as caught:
        parse(source)
    assert str(caught.value).startswith(f"line {line}: ")


@pytest.mark.parametrize("value", ["*hidden", "hidden: x", "!hidden", "'hidden", "'hid'den"])
def test_an_error_repeats_no_value(value: str) -> None:
    with pytest.raises(WrongYaml) as caught:
        parse(f"secretKey: {value}\n")
    assert "hid" not in str(caught.value)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True)
ACCOUNTS = st.dictionaries(NAMES, st.one_of(st.none(), TEXTS, st.lists(TEXTS, max_size=3)))
VALUES = st.one_of(st.none(), TEXTS, st.lists(st.one_of(TEXTS, ACCOUNTS), max_size=3), ACCOUNTS)


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_what_is_written_is_read_again(value: dict[str, Plain]) -> None:
    assert plain(parse(write(value))) == (value or None)


@given(st.text(alphabet="ab:-#'\"[]{}&*!|> \n\t\\1", max_size=60))
def test_anything_is_read_or_refused(source: str) -> None:
    try:
        line = parse(source).line
    except WrongYaml as error:
        named = re.match(r"line (\d+)", str(error))
        line = int(named[1]) if named else 0
    assert 1 <= line <= source.count("\n") + 1


def test_every_value_knows_its_line() -> None:
    found = parse("a: 1\n\nb:\n  - x\n")
    assert isinstance(found, Mapping)
    below = found.entries["b"]
    assert isinstance(below, Sequence)
    assert [one.line for one in (found, found.entries["a"], below, below.items[0])] == [1, 1, 4, 4]
    assert parse("") == Nothing(1)
