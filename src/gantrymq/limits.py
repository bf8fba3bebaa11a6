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

# SQL92 filters; Apache has no bounds here, and no filter in the field comes near these
FILTER_CHARACTERS_MAX: Final = 32768
"""One expression."""
FILTER_NODES_MAX: Final = 1024
"""Values and conditions in one expression; a list behind IN counts once. A comparison has three."""
FILTER_DEPTH_MAX: Final = 64
"""Nesting of one expression: brackets, NOT and signs while reading, conditions in the result."""
FILTER_NUMERAL_CHARACTERS_MAX: Final = 1024
"""A property that is read as a number; a longer one is none."""
FILTERS_CACHED_MAX: Final = 100
"""Compiled expressions that are kept."""
FILTERS_REGISTERED_MAX: Final = 65536
"""Pairs of group and topic with a filter on one broker."""

# Name server
NAMESRV_BROKERS_MAX: Final = 10_000
"""Masters and slaves in one routing table."""
NAMESRV_ROUTES_MAX: Final = 1_000_000
"""Pairs of topic and broker group in one routing table; about 500 bytes each."""
NAMESRV_VIEWS_MAX: Final = 16
"""Encoded answers kept for one topic, one for each address that clients came in by."""
NAMESRV_ADVERTISED_MAX: Final = 1024
"""Addresses for which a broker of the same process has given others."""
NAMESRV_FILTER_SERVERS_MAX: Final = 64
"""Filter servers of one broker; no release since 4.3 has any."""
BROKER_NAME_BYTES_MAX: Final = 255
"""A broker group, a cluster or a zone."""
ADDRESS_CHARACTERS_MAX: Final = 261
"""A host name of 253 with brackets, a colon and a port."""
BROKER_TIMEOUT_MS_MAX: Final = 3_600_000
"""What a broker may ask for: the silence after which it counts as dead."""
KV_NAMESPACES_MAX: Final = 1024
KV_NAME_BYTES_MAX: Final = 512
"""A namespace or a key; the longest key in use is the name of a topic."""
KV_VALUE_BYTES_MAX: Final = 65536
KV_BYTES_MAX: Final = 4 * 1024 * 1024
"""All of `kvConfig.json`, which is written anew with every change."""

# What a broker keeps
TOPICS_MAX: Final = REGISTRATION_TOPICS_MAX
"""More could not be registered."""
GROUPS_MAX: Final = 100_000
"""Consumer groups with settings."""
OFFSETS_MAX: Final = 5_000_000
"""Committed offsets: queues times the groups that read them; about 100 bytes each."""
DELAY_LEVELS_MAX: Final = 1024
"""Apache has 18, and a setting for more."""
REQUEST_MODES_MAX: Final = 100_000
"""5.x: pairs of topic and group that are set to pull or pop."""
QUEUE_LOCKS_MAX: Final = 1_000_000
"""Queues that members of all groups hold for orderly consumption."""
CLIENT_GROUPS_MAX: Final = 1024
"""Producer groups, and likewise consumer groups, of one connection."""
MEMBER_SUBSCRIPTIONS_MAX: Final = 4096
"""Topics that one member of a group takes messages from."""
CLIENT_SUBSCRIPTION_BYTES_MAX: Final = 16 * 1024 * 1024
"""What the subscriptions of one connection take in memory, about."""
SUBSCRIPTION_TAGS_MAX: Final = 4096
"""Tags, and likewise their hashes, of one subscription."""
SUBSCRIPTION_CHARACTERS_MAX: Final = 65536
"""The expression of one subscription."""
ATTRIBUTE_CHARACTERS_MAX: Final = 4096
"""5.x: the attributes of a topic or group in one request."""

# Errors
SHOWN_CHARACTERS_MAX: Final = 64
"""Of a peer's key or value, in an error text."""
ERROR_TEXT_CHARACTERS_MAX: Final = 256
"""The place, and likewise the problem, of a protocol error."""
