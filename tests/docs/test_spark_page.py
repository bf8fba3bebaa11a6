"""The page on Spark is run: its blocks in order, as one program, with a broker and its files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gantrymq.blocking import Producer
from gantrymq.testing import ThreadedBroker
from support import markdown
from support import spark as sparks

if TYPE_CHECKING:
    import pytest

PAGE = Path(__file__).parents[2] / "docs" / "spark.md"
NAMESRV = "127.0.0.1:9876"


def test_the_page_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = markdown.blocks(PAGE.read_text(encoding="utf-8"))
    assert len(blocks) >= 5
    spark = sparks.start()
    with ThreadedBroker(directory=tmp_path / "store") as broker:
        with Producer(broker.namesrv) as producer:
            for number in range(60):
                producer.send("Orders", b"%d" % number, tags=f"t{number % 2}")
        names: dict[str, Any] = {
            "spark": spark,
            "store": str(tmp_path / "store"),
            "checkpoint": str(tmp_path / "checkpoint"),
            "lake": str(tmp_path / "lake"),
        }
        files = spark.read.format("rocketmq").option("path", names["store"])
        sparks.wait_for("the files", lambda: files.option("topic", "Orders").load().count() == 60)
        for block in blocks:
            text = block.text.replace(NAMESRV, broker.namesrv)
            exec(compile("\n" * block.line + text, str(PAGE), "exec"), names)  # noqa: S102
        assert sorted(one.body for one in broker.messages("Copies")) == sorted(
            b"%d" % number for number in range(60)
        )
    assert "t1" in capsys.readouterr().out
