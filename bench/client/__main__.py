"""`python -m bench.client` is `python bench/client/run.py`."""

from bench.client.run import main

main()
