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
JSON_ENTRIES_MAX: Final = 1_000_000
"""Commas and opening brackets of a JSON body, wherever they stand, counted before it is parsed. An
empty object takes 3 bytes on the wire and 72 in memory. A full frame holds fewer offsets."""
JSON_LOOSE_BYTES_MAX: Final = 4 * 1024 * 1024
"""A body that only the tolerant reader understands. Integers as keys do not make it one."""
JSON_LOOSE_ENTRIES_MAX: Final = 500_000
"""Commas, colons and opening brackets of such a body; about 2 us each. The statistics of a topic,
whose keys are objects, have 14 for each queue."""

# Names, in bytes of UTF-8
TOPIC_BYTES_MAX: Final = 127
"""One length byte in a version 1 record."""
SYSTEM_TOPIC_BYTES_MAX: Final = 255
"""%RETRY% and %DLQ% topics, which carry a group's name behind their prefix."""
GROUP_BYTES_MAX: Final = SYSTEM_TOPIC_BYTES_MAX - len("%RETRY%")
"""So that every group can have a retry topic, and that topic a directory, whose name has 255 bytes
at most. 4.9 takes groups of 255 and fails later: it stores no topic of more than 127."""
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

# Registrations
REGISTRATION_BYTES_MAX: Final = 32 * 1024 * 1024
"""What a compressed registration may grow to: `REGISTRATION_TOPICS_MAX` lines of 300 bytes."""
REGISTRATION_TOPICS_MAX: Final = 100_000
"""Topics of one broker; as many as `JSON_ENTRIES_MAX` allows in the plain form."""
REGISTRATION_MAPPINGS_MAX: Final = 20_000
"""5.x static topics of one broker."""

# Topics
QUEUES_MAX: Final = 65536
"""Read or write queues of a topic."""

# Errors
SHOWN_CHARACTERS_MAX: Final = 64
"""Of a peer's key or value, in an error text."""
ERROR_TEXT_CHARACTERS_MAX: Final = 256
"""The place, and likewise the problem, of a protocol error."""
