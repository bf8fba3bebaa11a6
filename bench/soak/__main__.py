"""`python -m bench.soak` is `python bench/soak/run.py`."""

import sys

from bench.soak.run import main

sys.exit(main())
