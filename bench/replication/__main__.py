"""`python -m bench.replication` is `python bench/replication/run.py`."""

import sys

from bench.replication.run import main

sys.exit(main())
