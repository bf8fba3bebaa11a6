"""Both brokers, one after the other, on this machine with the same generator: `run.py` says how."""
