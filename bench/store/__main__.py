"""`python -m bench.store` is `python bench/store/run.py`."""

from bench.store.run import main

main()
