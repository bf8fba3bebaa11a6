"""Texts in both languages, and pages that make no markup out of what they are told."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import gantrymq.dashboard
from gantrymq.dashboard.assets import load_assets

STATIC = Path(gantrymq.dashboard.__file__).parent / "static"
MODULES = sorted((STATIC / "js").rglob("*.js"))
TEXTS = json.loads((STATIC / "texts.json").read_text(encoding="utf-8"))
USED = re.compile(r"""\bt\("([^"]+)"[,)]""")
FORBIDDEN = (
    "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
    "srcdoc", "javascript:", "http://", "https://",
)  # fmt: skip


def test_every_text_is_there_in_both_languages() -> None:
    assert len(TEXTS) > 200
    for key, entry in TEXTS.items():
        assert set(entry) == {"en", "zh"}, key
        assert all(text.strip() for text in entry.values()), key
        fields = [sorted(re.findall(r"\{\w+\}", text)) for text in entry.values()]
        assert fields[0] == fields[1], key


def test_the_chinese_is_chinese() -> None:
    same = {key for key, entry in TEXTS.items() if entry["en"] == entry["zh"]}
    assert same <= {"brokers.broker", "messages.key", "messages.tag"}


def test_pages_use_texts_that_there_are_and_no_text_is_unused() -> None:
    used = {key for path in MODULES for key in USED.findall(path.read_text(encoding="utf-8"))}
    assert used == set(TEXTS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_module_makes_no_markup_and_asks_nobody_else(path: Path) -> None:
    text = path.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
    assert [each for each in FORBIDDEN if each in text] == []
    assert text.count("\n") <= 300


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_what_a_module_imports_is_there(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    found = re.findall(r'import \{([^}]*)\} from "([^"]+)"', text)
    for names, source in found:
        target = (path.parent / source).resolve()
        exported = set(
            re.findall(
                r"export (?:async )?(?:function|const|class) (\w+)",
                target.read_text(encoding="utf-8"),
            )
        )
        wanted = {name.strip() for name in names.split(",") if name.strip()}
        assert wanted <= exported, f"{path.name} wants {wanted - exported} of {source}"
        rest = text.split(f'from "{source}"', 1)[1]
        unused = [name for name in wanted if not re.search(rf"\b{name}\b", rest)]
        assert unused == [], f"{path.name} has no use for {unused}"


def test_the_page_has_nothing_inline() -> None:
    text = (STATIC / "index.html").read_text(encoding="utf-8")
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*\bsrc=)", text)
    css = (STATIC / "style.css").read_text(encoding="utf-8")
    assert "url(" not in css
    assert "@import" not in css


def test_all_files_are_served() -> None:
    served = load_assets()
    (mark,) = {name.split("/")[1] for name in served if name.startswith("assets/")}
    assert len(mark) == 16
    first = served["index.html"].content.decode()
    assert re.findall(r"\{\w+\}|<!--", first) == []
    linked = {name.removeprefix("/") for name in re.findall(r'(?:href|src)="([^"]+)"', first)}
    assert linked <= set(served)
    assert {name for name in served if name.endswith(".js")} <= linked
    found = {name.removeprefix(f"assets/{mark}/") for name in served}
    on_disk = {path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*") if path.is_file()}
    assert set(found) == on_disk
