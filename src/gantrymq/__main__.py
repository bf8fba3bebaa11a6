"""`python -m gantrymq` is the `gantrymq` command."""

import sys

from gantrymq.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
