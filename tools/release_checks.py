"""What a release needs beside tests that pass: the list of what it is made of, and an audit of it.

    python tools/release_checks.py sbom      writes build/gantrymq.cdx.json (CycloneDX)
    python tools/release_checks.py audit     asks about known weaknesses of every pinned package

`release/requirements.lock` is what users get, with all extras, and `requirements.lock` what we work
with. The list is made from the first, without a network. The audit needs one.

exit status: 0 all is well, 1 a package has a known weakness or the list lacks one, 2 the audit
could not be made
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "src"))

from gantrymq.version import VERSION  # noqa: E402

USERS_LOCK = ROOT / "release" / "requirements.lock"
LOCKS = (USERS_LOCK, ROOT / "requirements.lock")
SBOM = ROOT / "build" / "gantrymq.cdx.json"
SPECIFICATION = SchemaVersion.V1_6
AUDIT_S_MAX = 900
SERVICE_S_MAX = 20
PINNED = re.compile(r"^([A-Za-z0-9][\w.-]*)==([^\s;\\]+)", re.MULTILINE)
WEAK, NOT_MADE = 1, 2


def pinned(lock: Path) -> set[tuple[str, str]]:
    """Return name and version of everything that a lock file pins."""
    found = PINNED.findall(lock.read_text(encoding="utf-8"))
    return {(name.lower().replace("_", "-"), version) for name, version in found}


def listed(sbom: dict[str, Any]) -> set[tuple[str, str]]:
    """Return name and version of everything in a list."""
    return {(one["name"].lower().replace("_", "-"), one["version"]) for one in sbom["components"]}


def direct() -> set[str]:
    """Return the names of what the package itself asks for, in its extras too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = [*project["dependencies"]]
    for extra in project["optional-dependencies"].values():
        lines += extra
    return {re.split(r"[^\w.-]", line, maxsplit=1)[0].lower().replace("_", "-") for line in lines}


def make_sbom(path: Path) -> int:
    """Write the list of what users get; return the exit status."""
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [
            # It warns that the package has no dependencies: they are added below.
            sys.executable, "-W", "ignore::UserWarning", "-m", "cyclonedx_py", "requirements",
            str(USERS_LOCK), "--pyproject", str(ROOT / "pyproject.toml"), "--mc-type",
            "application", "--spec-version", SPECIFICATION.to_version(), "--output-format", "JSON",
            "--output-reproducible", "--no-validate", "--output-file", str(path),
        ],
        cwd=ROOT, check=True,
    )  # fmt: skip
    made = completed(json.loads(path.read_text(encoding="utf-8")))
    text = json.dumps(made, indent=2) + "\n"
    path.write_text(text, encoding="utf-8")
    lacking = pinned(USERS_LOCK) - listed(made)
    if lacking:
        print(f"{path.name} lacks {sorted(lacking)}", file=sys.stderr)
    problem = JsonStrictValidator(SPECIFICATION).validate_str(text)
    if problem is not None:
        print(f"{path.name} is not what CycloneDX wants: {problem}", file=sys.stderr)
    if lacking or problem is not None:
        return WEAK
    print(f"{path.name}: gantrymq {VERSION} and {len(listed(made))} packages that it may need")
    return 0


def completed(made: dict[str, Any]) -> dict[str, Any]:
    """Return a list with what a lock file does not say: our version, and what we ask for."""
    about = made["metadata"]["component"]
    about["version"] = VERSION
    wanted = direct()
    references = [
        one["bom-ref"]
        for one in made["components"]
        if one["name"].lower().replace("_", "-") in wanted
    ]
    for one in made["components"]:
        one.pop("description", None)  # the line of the lock file once more
    others = [one for one in made["dependencies"] if one["ref"] != about["bom-ref"]]
    own = {"ref": about["bom-ref"], "dependsOn": sorted(references)}
    return {**made, "dependencies": [own, *others]}


def audit(lock: Path) -> int:
    """Ask about the packages of a lock file; return the exit status."""
    name = lock.relative_to(ROOT).as_posix()
    done = subprocess.run(
        [
            sys.executable, "-m", "pip_audit", "--requirement", str(lock), "--require-hashes",
            "--disable-pip", "--strict", "--progress-spinner", "off", "--format", "json",
            "--timeout", str(SERVICE_S_MAX),
        ],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=AUDIT_S_MAX,
    )  # fmt: skip
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        said = done.stderr.strip().splitlines()
        print(
            f"{name}: the audit could not be made, so nothing is known about weaknesses: "
            f"{said[-1] if said else 'pip-audit said nothing'}",
            file=sys.stderr,
        )
        return NOT_MADE
    return judged(name, packages)


def judged(name: str, packages: list[dict[str, Any]]) -> int:
    """Say what was found; return the exit status."""
    skipped = [one["name"] for one in packages if "skip_reason" in one]
    weak = [(one, found) for one in packages for found in one.get("vulns", ())]
    for one, found in weak:
        mended = ", ".join(found.get("fix_versions", ())) or "no version yet"
        print(
            f"{name}: {one['name']} {one['version']} has {found['id']}; mended in {mended}",
            file=sys.stderr,
        )
    if skipped:
        print(f"{name}: not asked about: {', '.join(skipped)}", file=sys.stderr)
    if weak:
        return WEAK
    if skipped or not packages:
        return NOT_MADE
    print(f"{name}: {len(packages)} packages, no known weakness")
    return 0


def main(arguments: list[str]) -> int:
    """Do what is asked; return the exit status."""
    if arguments == ["sbom"]:
        return make_sbom(SBOM)
    if arguments == ["audit"]:
        return max(audit(lock) for lock in LOCKS)
    print(__doc__, file=sys.stderr)
    return NOT_MADE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
