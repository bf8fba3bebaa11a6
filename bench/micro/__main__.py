"""`python -m bench.micro` is `python bench/micro/run.py`."""

from bench.micro.run import main

main()
