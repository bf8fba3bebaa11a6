"""The bodies of requests and answers as typed values, one module for each family.

`BODIES` says which body belongs to which request code, `CONFIG_FILES` which file holds which.
"""

from gantrymq.wire.bodies.codec import RAW, RECORDS, TEXT, Codec, JsonBody
from gantrymq.wire.bodies.table import BODIES, CONFIG_FILES, Bodies

__all__ = ["BODIES", "CONFIG_FILES", "RAW", "RECORDS", "TEXT", "Bodies", "Codec", "JsonBody"]
