"""The tutorial, in a smaller size: the demo, the page that shows its commands, the notebook."""

from __future__ import annotations

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gantrymq.testing import ThreadedBroker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "pipeline.md"
ORDERS = 6000


def test_the_page_shows_what_the_demo_runs() -> None:
    demo = runpy.run_path(str(ROOT / "tools" / "pipeline_demo.py"), run_name="demo")
    commands = [text.format(batch=100_000) for text in demo["COMMANDS"].values()]
    page = PAGE.read_text()
    tutorial = page.partition("## What the jobs")[0]
    shown = re.findall(r"^gantrymq pipeline run .*$", tutorial, re.MULTILINE)
    assert shown == commands


@pytest.mark.tool("java")
def test_the_demo_runs(tmp_path: Path) -> None:
    demo = [sys.executable, str(ROOT / "tools" / "pipeline_demo.py"), "--orders", str(ORDERS)]
    done = subprocess.run(
        [*demo, "--folder", str(tmp_path / "demo"), "--master", "local[2]", "--one-spark"],
        capture_output=True, text=True, check=False, timeout=580,
    )  # fmt: skip
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    folder = tmp_path / "demo"
    killed = re.search(r"killed after (\d+) of 10 batches", done.stdout)
    assert killed is not None
    assert 5 <= int(killed[1]) < 12
    archive = json.loads((folder / "archive.json").read_bytes())
    assert archive["figures"]["messages in the lake"] == ORDERS
    assert all(check["passed"] for check in archive["checks"])
    (hit,) = json.loads((folder / "search.json").read_bytes())["tables"]["hits"]
    assert hit["keys"] == "order-4711"
    rebuilt = json.loads((folder / "rebuilt.json").read_bytes())
    assert rebuilt["figures"]["queues differs"] == 0
    assert rebuilt["figures"]["messages"] >= ORDERS
    for page in ("audit.html", "latency.html"):
        assert (folder / page).read_text().count("<svg") == 3


@pytest.mark.tool("java")
def test_the_notebook_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notebook = json.loads((ROOT / "examples" / "pipeline.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    program = tmp_path / "notebook.py"
    program.write_text("\n".join(cells))
    monkeypatch.chdir(tmp_path)
    with ThreadedBroker() as broker:
        broker.create_topic("Orders", 4)
        monkeypatch.setenv("NAME_SERVER", broker.namesrv)
        monkeypatch.setenv("ORDERS", "2000")
        monkeypatch.setenv("LAKE", str(tmp_path / "lake"))
        made = runpy.run_path(str(program))
    assert made["report"].figures["messages archived"] == 2000
    assert made["spark"].sparkContext is spark.sparkContext
    assert "<svg" in (tmp_path / "latency.html").read_text()
