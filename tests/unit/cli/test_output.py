"""What commands print: a terminal shows all of it, and obeys none."""

from __future__ import annotations

import json

import pytest

from gantrymq.cli.output import Answer, Table, moment, second, show
from gantrymq.errors import visible

HOSTILE = "a\x1b]52;c;cm0gLXJm\x07b\rc\x9bd\u202ee"


def test_nothing_that_a_peer_says_reaches_the_terminal_as_it_is(
    capsys: pytest.CaptureFixture[str],
) -> None:
    table = Table(("#Client", "#Said"), [(HOSTILE, "one\ntwo")])
    show(Answer([table, f"body: {HOSTILE}\n\ttabbed"], problems=[HOSTILE]), as_json=False)
    told = capsys.readouterr()
    for text in (told.out, told.err):
        assert not set(text) & set("\x1b\x07\r\x9b\u202e")
        assert r"a\x1b]52;c;cm0gLXJm\x07b\x0dc\x9bd\u202ee" in text
    assert "\n\ttabbed\n" in told.out
    assert r"one\x0atwo" in told.out


def test_json_and_scripts_are_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    show(Answer(data={"body": HOSTILE}), as_json=True)
    assert json.loads(capsys.readouterr().out) == {"body": HOSTILE}
    show(Answer(["echo \x1b"], is_raw=True), as_json=False)
    assert capsys.readouterr().out == "echo \x1b\n"


def test_ordinary_text_stays() -> None:
    text = "Grüße, 世界 \U0001f511\tx\ny"
    assert visible(text) == text


@pytest.mark.parametrize("time_ms", [2**62, 10**17, 253_402_300_800_000])
def test_a_time_that_no_calendar_has_is_shown_as_its_number(time_ms: int) -> None:
    for shown in (moment(time_ms), second(time_ms)):
        assert shown.value == time_ms
        assert shown.text == str(time_ms) or shown.text.startswith("9999")
