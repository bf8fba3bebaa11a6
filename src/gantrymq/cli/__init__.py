"""The command line: `gantrymq`."""
