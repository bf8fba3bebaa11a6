"""The message store: commit log, consume queues, index; the only code that opens data files."""
