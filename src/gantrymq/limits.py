"""Every bound in one table. A number that limits what a peer or a user may do lives here.

The values are Apache RocketMQ's where it has one, so that what it accepts is accepted here.
"""

from typing import Final

# Frames
FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
"""A whole frame with its four length bytes; both directions."""
HEADER_BYTES_MAX: Final = FRAME_BYTES_MAX - 8
"""A header can fill its frame; 24 bits of length allow no more."""
EXT_FIELDS_MAX: Final = 1024
"""Entries in one header; the largest known request has 31."""
JSON_DEPTH_MAX: Final = 64
"""Nesting of a JSON header or body; the deepest known body has 6."""

# Names, in bytes of UTF-8
TOPIC_BYTES_MAX: Final = 127
"""One length byte in a version 1 record."""
SYSTEM_TOPIC_BYTES_MAX: Final = 255
"""%RETRY% and %DLQ% topics, which carry a group's name behind their prefix."""
GROUP_BYTES_MAX: Final = 255
CLIENT_ID_BYTES_MAX: Final = 1024

# Messages
BODY_BYTES_MAX: Final = 4 * 1024 * 1024
"""Default of `maxMessageSize`."""
PROPERTIES_BYTES_MAX: Final = 32767
"""Two signed length bytes in a record."""
RECORD_OVERHEAD_BYTES_MAX: Final = 65536
"""What a record may be larger than its body: hosts, topic, properties, fixed fields."""
DECOMPRESSED_BODY_BYTES_MAX: Final = 64 * 1024 * 1024
"""What a compressed body may grow to before it is refused as a bomb."""
BATCH_MESSAGES_MAX: Final = 65536
"""Messages in one batch body of the largest size: an empty one takes 22 bytes."""

# Topics
QUEUES_MAX: Final = 65536
"""Read or write queues of a topic."""
