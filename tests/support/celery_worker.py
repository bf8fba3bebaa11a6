"""A Celery worker in the process of a test, which leaves the log of other tests as it was."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from celery.contrib.testing.worker import start_worker

if TYPE_CHECKING:
    from collections.abc import Iterator

WAIT_S = 90


@contextmanager
def worker(app: Any) -> Iterator[None]:  # noqa: ANN401 - Celery has no types
    """Run a worker on a thread; Celery sets the root logger's level for the whole process."""
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    try:
        with start_worker(app, pool="solo", perform_ping_check=False, shutdown_timeout=WAIT_S):
            yield
    finally:
        # Celery keeps its connections for the life of the process: they would ask for a broker that
        # is gone as long as other tests run.
        app.amqp.producer_pool.force_close_all()
        app.pool.force_close_all()
        app.close()
        root.setLevel(level)
        root.handlers[:] = handlers
