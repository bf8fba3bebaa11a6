"""Builds the compiled kernel. Everything else about the package is in pyproject.toml.

The extension is optional: on a machine without a C compiler the build goes on, the package works on
the readable twin in `gantrymq.kernel.reference`, and `gantrymq --version` says so.
"""

import os
import sys

from setuptools import Extension, setup

KERNEL = "src/gantrymq/kernel/_native.pyx"


def extensions() -> list[Extension]:
    """Return the compiled kernel, or nothing where it is not wanted or cannot be translated."""
    if os.environ.get("GANTRYMQ_PURE") == "1":
        return []
    try:
        from Cython.Build import cythonize  # noqa: PLC0415  (a build without Cython is a pure one)
    except ImportError:
        sys.stderr.write("gantrymq: no Cython, so no compiled kernel; the readable twin is used\n")
        return []
    # -fwrapv: hashes and offsets wrap as they do in Java, in every compiler.
    flags = [] if sys.platform == "win32" else ["-O3", "-fwrapv", "-fno-strict-aliasing"]
    if os.environ.get("GANTRYMQ_SANITIZE") == "1":
        flags += ["-g", "-fsanitize=address,undefined", "-fno-omit-frame-pointer"]
    kernel = Extension(
        "gantrymq.kernel._native",
        [KERNEL],
        extra_compile_args=flags,
        extra_link_args=["-fsanitize=address,undefined"] if "-g" in flags else [],
    )
    built: list[Extension] = cythonize([kernel], compiler_directives={"language_level": "3"})
    for extension in built:
        extension.optional = True  # set here, since cythonize does not hand it on
    return built


setup(ext_modules=extensions())
