"""How the lines of the log are written: for people, or as JSON for what collects them.

A JSON line is one object:

    time        UTC, to the millisecond
    level, logger, message
    template    the message before its values were put in: the same for all lines of a kind
    fields      what was logged beside the message (`extra`), if anything
    exception   type, text and traceback, if there is one
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Final, TextIO

import msgspec

from gantrymq.errors import visible

TEXT_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"
_USUAL: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
"""What every record has."""


class TextFormatter(logging.Formatter):
    """Makes one line of a record, whatever a peer had put into it; a traceback follows as it is."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Return the line."""
        return visible(super().formatMessage(record), lines=False)


class JsonFormatter(logging.Formatter):
    """Makes a JSON object of a record."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        when = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, object] = {
            "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.args:
            line["template"] = str(record.msg)
        fields = {key: value for key, value in vars(record).items() if key not in _USUAL}
        if fields:
            line["fields"] = fields
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        try:
            return msgspec.json.encode(line, enc_hook=str).decode()
        except UnicodeEncodeError:  # the name of a file that is no text, for example
            message = record.getMessage().encode(errors="backslashreplace").decode()
            plain = {"time": line["time"], "level": record.levelname, "logger": record.name}
            return msgspec.json.encode({**plain, "message": message}).decode()


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes on standard error; a class of its own, so that it is known again."""


def configure_logs(level: str, form: str) -> None:
    """Write lines of a level and above on standard error, as text or as json.

    A process whose log somebody else has set up, as a test, is left as it is.
    """
    root = logging.getLogger()
    ours = next((one for one in root.handlers if isinstance(one, LineHandler)), None)
    if ours is None:
        if root.handlers:
            return
        ours = LineHandler()
        root.addHandler(ours)
    ours.setFormatter(JsonFormatter() if form == "json" else TextFormatter(TEXT_FORMAT))
    root.setLevel(level.upper())
