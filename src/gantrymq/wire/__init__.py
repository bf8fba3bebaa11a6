"""The remoting protocol as values: bytes in, values out, and back; no socket and no clock."""
