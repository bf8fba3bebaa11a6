"""Celery with RocketMQ as its broker: `pip install gantrymq[celery] celery`.

celery -A celery_tasks worker
"""

import sys

from celery import Celery
from celery.contrib.testing.worker import start_worker

import gantrymq.kombu  # noqa: F401 - makes `gantrymq://` known

address = sys.argv[1] if __name__ == "__main__" and len(sys.argv) > 1 else "127.0.0.1:9876"
app = Celery("shop", broker=f"gantrymq://{address}//", backend="cache+memory://")
app.conf.broker_transport_options = {"route_s": 1}


@app.task
def add(one: int, two: int) -> int:
    """Do some work."""
    return one + two


if __name__ == "__main__":
    with start_worker(app, pool="solo", perform_ping_check=False):
        print(add.delay(20, 22).get(timeout=20))
