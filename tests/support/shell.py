"""`gantrymq` run in the test's own process, against one server."""

from __future__ import annotations

import contextlib
import io
import json
from typing import TYPE_CHECKING, Any, NamedTuple

from gantrymq.cli.main import main

if TYPE_CHECKING:
    from support.gantry import Running


class Ended(NamedTuple):
    """What a command came to."""

    status: int
    out: str
    err: str

    @property
    def data(self) -> Any:  # noqa: ANN401  (what a command prints)
        """Return what it printed as JSON."""
        return json.loads(self.out)


class Shell:
    """Runs `gantrymq` in this process, against one server."""

    def __init__(self, server: Running) -> None:
        self.server = server
        self.broker = f"127.0.0.1:{server.port}"

    def run(self, *words: str) -> Ended:
        """Run a command."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = main([*words, "-n", self.server.name_server])
            except SystemExit as stopped:
                status = int(str(stopped.code))
        return Ended(status, out.getvalue(), err.getvalue())

    def well(self, *words: str) -> str:
        """Run a command that must succeed; return what it printed."""
        ended = self.run(*words)
        assert ended.status == 0, (words, ended)
        return ended.out

    def json(self, *words: str) -> Any:  # noqa: ANN401  (what a command prints)
        """Run a command that must succeed; return its JSON."""
        return json.loads(self.well(*words, "--json"))
