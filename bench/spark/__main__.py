"""`python -m bench.spark` is `python bench/spark/run.py`."""

from bench.spark.run import main

main()
