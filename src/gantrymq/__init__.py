"""gantrymq: RocketMQ in one pip install, with your topics as Spark tables."""

from gantrymq.version import VERSION as __version__

__all__ = ["__version__"]
