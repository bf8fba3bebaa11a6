"""A user's type checker understands the public names: the sample is clean, mistakes are found."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLE = Path(__file__).with_name("sample.py")
MISTAKES = {
    "await producer.send('T', 'text')": "body",
    "await producer.send('T', b'x', delay=3)": "delay",
    "producer.send_batch(3)": "Iterable",
    "PushConsumer('n', 'g', start='middle')": "middle",
    "PushConsumer('n', 'g', hearbeat_s=3)": "hearbeat_s",
    "blocking.Producer('n').send('T', 'text')": "body",
    "gantrymq.Nothing": "Nothing",
}
PROGRAM = """
import gantrymq
from gantrymq import Producer, PushConsumer, blocking

async def main(producer: Producer) -> None:
    {line}
"""


def errors_of(path: Path, folder: Path) -> list[str]:
    """Return what pyright says in its strict mode."""
    settings = {
        "include": [str(path)],
        "typeCheckingMode": "strict",
        "extraPaths": [str(ROOT / "src")],
        "pythonVersion": "3.11",
        "venvPath": str(Path(sys.prefix).parent),
        "venv": Path(sys.prefix).name,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings))
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "-p", str(folder), "--outputjson"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    found = report["generalDiagnostics"]
    return [f"{one['range']['start']['line'] + 1}: {one['message']}" for one in found]


def test_the_sample_is_clean_for_pyright(tmp_path: Path) -> None:
    assert errors_of(Path(shutil.copy(SAMPLE, tmp_path)), tmp_path) == []


@pytest.mark.parametrize("line", MISTAKES)
def test_pyright_finds_a_mistake(line: str, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(line=line))
    problems = errors_of(program, tmp_path)
    assert any(MISTAKES[line] in problem for problem in problems), problems
