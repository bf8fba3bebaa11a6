"""Progress of a job, committed to brokers as a consumer group's: every tool shows its lag."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gantrymq.spark.given import Given
from gantrymq.spark.options import CONNECTION_NAMES, connection_options
from gantrymq.spark.progress import GroupProgress

if TYPE_CHECKING:
    from gantrymq.spark.jobs.sources import ServerOptions
    from gantrymq.spark.offsets import Offsets


def commit_group(options: ServerOptions, group: str, offsets: Offsets) -> None:
    """Commit offsets, which are those of the next messages to read.

    Raises:
        InvalidValue: there is no name server, or the group cannot be one.
        GantryError: a broker does not take them.
    """
    given = Given(options.connection() | {"groupId": group}, CONNECTION_NAMES)
    connection = connection_options(given, is_needed=True)
    given.refuse()
    GroupProgress(connection).commit(offsets)
