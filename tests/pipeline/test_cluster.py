"""Jobs with executors in processes of their own give what they give on one machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from gantrymq.spark.jobs import rebuild_cq
from gantrymq.spark.launch.session import prepare_environment
from support import cluster_jobs
from support.golden_trees import configuration, unpacked
from support.pipeline import MASTER
from support.spark_cluster import StandaloneCluster

pytestmark = pytest.mark.tool("java")
LABEL = "apache-5.5.0-clean"


def run_here(root: Path, to: Path) -> dict[str, object]:
    """Run some jobs with the session of this process, which has two cores."""
    to.mkdir()
    assert cluster_jobs.main(MASTER, str(root), str(configuration(LABEL)), to) == 0
    return results(to)


def run_all(root: Path, to: Path, master: str) -> dict[str, object]:
    """Run some jobs in a process of their own; return what is there then."""
    to.mkdir()
    done = subprocess.run(
        [
            sys.executable,
            cluster_jobs.__file__,
            master,
            str(root),
            str(configuration(LABEL)),
            str(to),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return results(to)


def results(to: Path) -> dict[str, object]:
    """Return what jobs have made and found."""
    found: dict[str, object] = {}
    for name in cluster_jobs.NAMES:
        said = json.loads((to / f"{name}.json").read_bytes())
        assert said["checks"]
        assert all(check["passed"] for check in said["checks"])
        found[name] = said["tables"]["queues"]
    found["files"] = {
        str(path.relative_to(to)): path.read_bytes()
        for folder in ("cq", "ix")
        for path in (to / folder).rglob("*")
        if path.is_file()
    }
    return found


@pytest.mark.usefixtures("spark")
def test_a_cluster_with_executors_of_its_own_gives_the_same(tmp_path: Path) -> None:
    root = unpacked(LABEL, tmp_path)
    local = run_here(root, tmp_path / "local")
    with StandaloneCluster(tmp_path) as cluster:
        there = run_all(root, tmp_path / "there", cluster.master)
        executors = [path for path in (tmp_path / "work").glob("app-*/*") if path.is_dir()]
    assert there == local
    files = there["files"]
    assert isinstance(files, dict)
    assert len(files) > 30
    assert len(executors) == 2


def test_spark_connect_gives_the_same(tmp_path: Path) -> None:
    """The client has a server of its own here; between them is gRPC, as with one elsewhere."""
    root = unpacked(LABEL, tmp_path)
    through = run_all(root, tmp_path / "through", "connect:local[2]")
    files = through["files"]
    assert isinstance(files, dict)
    own = {
        f"cq/consumequeue/{path.relative_to(root / 'consumequeue')}": path.read_bytes()
        for path in (root / "consumequeue").rglob("*")
        if path.is_file()
    }
    made = {name: raw for name, raw in files.items() if name in own}
    assert made == {name: own[name] for name in made}
    assert len(made) > 30


def test_the_module_of_a_job_is_what_spark_submit_takes(tmp_path: Path) -> None:
    root, to = unpacked(LABEL, tmp_path), tmp_path / "submitted"
    environment = dict(os.environ)
    prepare_environment(environment)
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    settings = [word for key, value in cluster_jobs.SMALL.items()
                for word in ("--conf", f"{key}={value}")]  # fmt: skip
    command = [
        str(submit), "--master", "local[2]", *settings, rebuild_cq.__file__, "--path",
        str(root), "--config", str(configuration(LABEL)), "--to", str(to),
    ]  # fmt: skip
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=300, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "units lead to their messages" in done.stdout
    assert any((to / "consumequeue").iterdir())
