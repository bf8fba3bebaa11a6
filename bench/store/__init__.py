"""Benchmarks of the message store on a real disk: what issue 4 promises, each with its bar."""
