"""The command line, measured."""
