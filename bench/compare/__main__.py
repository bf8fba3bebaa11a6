"""`python -m bench.compare` is `python bench/compare/run.py`."""

from bench.compare.run import main

main()
