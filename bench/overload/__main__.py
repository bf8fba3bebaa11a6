"""`python -m bench.overload` is `python bench/overload/run.py`."""

import sys

from bench.overload.run import main

sys.exit(main())
