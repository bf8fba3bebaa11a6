"""Micro-benchmarks of the kernel: one function, one core, no network and no disk."""
