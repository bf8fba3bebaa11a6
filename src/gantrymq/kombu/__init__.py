"""A kombu transport, so that Celery can have RocketMQ as its broker.

    import gantrymq.kombu  # makes `gantrymq://` known

    app = Celery("shop", broker="gantrymq://127.0.0.1:9876//")

A kombu queue is a topic, and its consumers are one group; see `transport` for what that means.
Needs kombu (`pip install gantrymq[celery]`).
"""

from kombu.transport import TRANSPORT_ALIASES

from gantrymq.kombu.transport import Channel, Transport

__all__ = ["Channel", "Transport"]

TRANSPORT_ALIASES["gantrymq"] = "gantrymq.kombu.transport:Transport"
