"""The steps before a release: the list of what it is made of, the audit that needs a network."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from gantrymq.version import VERSION
from support.ports import free_port

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "release_checks.py"


def tool() -> ModuleType:
    specification = importlib.util.spec_from_file_location("release_checks", TOOL)
    assert specification is not None
    assert specification.loader is not None
    made = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(made)
    return made


def wanted() -> set[str]:
    """Return the names of what users install with the package, extras included."""
    return set(tool().direct())


def test_the_list_has_everything_that_users_get(tmp_path: Path) -> None:
    path = tmp_path / "gantrymq.cdx.json"
    assert tool().make_sbom(path) == 0, "it is what the schema of CycloneDX wants"
    text = path.read_text(encoding="utf-8")
    made = json.loads(text)
    assert (made["bomFormat"], made["specVersion"]) == ("CycloneDX", "1.6")
    about = made["metadata"]["component"]
    assert (about["name"], about["version"]) == ("gantrymq", VERSION)
    parts = {one["name"].lower().replace("_", "-"): one for one in made["components"]}
    assert {"msgspec", "lz4", "cryptography", "starlette", "etcd3gw", "pyspark"} <= wanted()
    assert sorted(wanted() - parts.keys()) == []
    for name, one in parts.items():
        assert one["purl"].lower().startswith(f"pkg:pypi/{name}@{one['version']}"), name
        assert one["externalReferences"][0]["hashes"], name
    (own,) = (one for one in made["dependencies"] if one["ref"] == about["bom-ref"])
    assert set(own["dependsOn"]) == {parts[name]["bom-ref"] for name in wanted()}
    assert parts.keys().isdisjoint({"pytest", "mypy", "ruff", "pip-audit"}), "no tool of ours"
    assert str(ROOT) not in text, "no path of the machine that made it"


def test_both_locks_have_the_same_versions() -> None:
    """What is tested is what users get."""
    checks = tool()
    tested, given = checks.pinned(checks.LOCKS[1]), checks.pinned(checks.USERS_LOCK)
    assert len(given) > 20
    names = {name for name, _ in tested}
    assert wanted() <= names
    assert sorted(pin for pin in given - tested if pin[0] in names) == []


def test_an_audit_without_its_service_fails_and_says_so() -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    environment = {**os.environ, "HTTPS_PROXY": nobody, "https_proxy": nobody, "NO_PROXY": ""}
    done = subprocess.run(
        [sys.executable, str(TOOL), "audit"],
        env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    lines = done.stderr.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "release/requirements.lock", "requirements.lock",
    ]  # fmt: skip
    assert all("could not be made, so nothing is known" in line for line in lines)


def package(name: str = "one", **more: object) -> dict[str, Any]:
    return {"name": name, "version": "1.0", "vulns": [], **more}


WEAKNESS = {"id": "PYSEC-2026-1", "fix_versions": ["1.1"], "aliases": [], "description": ""}


@pytest.mark.parametrize(
    ("packages", "status", "said"),
    [
        ([package(), package("two")], 0, "2 packages, no known weakness"),
        ([package(vulns=[WEAKNESS])], 1, "one 1.0 has PYSEC-2026-1; mended in 1.1"),
        ([package(vulns=[WEAKNESS | {"fix_versions": []}])], 1, "no version yet"),
        ([package(), {"name": "three", "skip_reason": "not there"}], 2, "not asked about: three"),
        ([], 2, ""),
    ],
)
def test_what_an_audit_finds_is_said(
    capsys: pytest.CaptureFixture[str], packages: list[dict[str, Any]], status: int, said: str
) -> None:
    assert tool().judged("some.lock", packages) == status
    told = capsys.readouterr()
    assert said in told.out + told.err
