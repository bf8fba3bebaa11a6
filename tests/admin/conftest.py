"""One server for all tests of the command line, and a way to run commands against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from support import gantry
from support.shell import Shell

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Give a server with names that Apache's tools have, and its shell."""
    work = tmp_path_factory.mktemp("admin")
    with gantry.server(work, {"brokerName": "broker-a"}) as server:
        yield Shell(server)
