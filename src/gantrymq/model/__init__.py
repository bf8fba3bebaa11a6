"""RocketMQ's things as frozen values: no I/O, no clock, no spelling of the wire."""
