"""Which kernel runs, and that a missing one is not kept quiet."""

from __future__ import annotations

import logging
import subprocess
import sys
from types import ModuleType

import pytest

import gantrymq.kernel
from gantrymq.kernel import available, reference
from support import kernels


def test_the_compiled_kernel_is_here() -> None:
    problem = kernels.kernel_problem()
    assert problem is None or kernels.readable_allowed(), problem


def test_the_head_of_a_run_names_the_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kernels.header_line().startswith("kernels: readable")
    monkeypatch.setattr(kernels, "KERNELS", {"readable": reference})
    assert "the compiled kernel is missing" in kernels.header_line()


def test_the_readable_kernel_is_always_available() -> None:
    assert available()[0].KERNEL_NAME == "readable"
    assert [each.KERNEL_NAME for each in available()[1:]] in ([], ["compiled"])


def run_python(code: str, wanted: str | None) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": ":".join(sys.path)}
    if wanted is not None:
        environment["GANTRYMQ_KERNEL"] = wanted
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


SAY = "from gantrymq.kernel import kernel; print(kernel.KERNEL_NAME)"
HIDE = "import sys; sys.modules['gantrymq.kernel._native'] = None; "


def test_the_readable_one_on_demand() -> None:
    assert run_python(SAY, "readable").stdout == "readable\n"


@pytest.mark.parametrize("wanted", [None, ""])
def test_the_best_one_otherwise(wanted: str | None) -> None:
    assert run_python(SAY, wanted).stdout == f"{available()[-1].KERNEL_NAME}\n"


def test_without_the_compiled_one_a_line_is_logged_once() -> None:
    done = run_python(HIDE + SAY + "; import gantrymq.kernel", None)
    assert done.stdout == "readable\n"
    assert done.stderr.count("the compiled kernel is not here") == 1


def test_a_demand_that_cannot_be_met() -> None:
    done = run_python(HIDE + SAY, "compiled")
    assert done.returncode == 1
    assert "ImportError: GANTRYMQ_KERNEL asks for the compiled kernel" in done.stderr
    assert "build_ext --inplace" in done.stderr


def test_a_demand_that_nobody_understands() -> None:
    done = run_python(SAY, "fast")
    assert done.returncode == 1
    assert "GANTRYMQ_KERNEL is 'fast': say 'compiled' or 'readable'" in done.stderr


def test_choosing_in_this_process(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert gantrymq.kernel._choose("readable") is available()[0]
    monkeypatch.setitem(sys.modules, "gantrymq.kernel._native", None)
    with caplog.at_level(logging.WARNING, "gantrymq.kernel"):
        assert gantrymq.kernel._choose(None) is reference
    assert len(caplog.records) == 1
    assert available() == (reference,)
    with pytest.raises(ImportError, match="asks for the compiled kernel"):
        gantrymq.kernel._choose("compiled")
    monkeypatch.setitem(sys.modules, "gantrymq.kernel._native", ModuleType("other"))
    assert len(available()) == 2


def test_the_kernels_have_the_same_functions() -> None:
    names = set(reference.__all__)
    for each in available():
        assert names <= set(dir(each))
