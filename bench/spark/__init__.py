"""The format `rocketmq` beside Spark's own Kafka source, on this machine."""
