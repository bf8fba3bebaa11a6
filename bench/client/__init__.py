"""The Python client beside other clients, on this machine: `run.py` says how."""
