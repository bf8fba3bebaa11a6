"""The format `rocketmq`, where Spark looks for formats: in every top-level module `pyspark_*`.

Spark imports this in a worker whenever a format is asked for that it does not know, and one that
fails hides all others. So nothing heavy is imported here, and nothing that may be missing.
"""

from gantrymq.spark.source import RocketMQSource as DefaultSource

__all__ = ["DefaultSource"]
