"""Bad input for every parser: `python -m fuzz.run TARGET`, or `make fuzz` for all of them."""

import sys
from pathlib import Path

# The golden data is read as the tests read it, with their module.
sys.path.append(str(Path(__file__).parent.parent / "tests"))
