"""What `import gantrymq` offers, and what it costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import gantrymq


def test_every_public_name_is_there() -> None:
    for name in gantrymq.__all__:
        assert getattr(gantrymq, name) is not None
    assert set(gantrymq.__all__) <= set(dir(gantrymq))
    assert set(gantrymq._PLACES) | {"__version__"} == set(gantrymq.__all__)


def test_a_name_that_is_none() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Prodcuer'"):
        _ = gantrymq.Prodcuer  # type: ignore[attr-defined]


def test_the_client_is_imported_when_it_is_used() -> None:
    code = (
        "import sys, gantrymq; print('gantrymq.client' in sys.modules);"
        "gantrymq.Producer; print('gantrymq.client.producer' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["False", "True"]
