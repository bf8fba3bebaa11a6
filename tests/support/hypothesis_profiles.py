"""How hard the property tests try: HYPOTHESIS_PROFILE is `fast` (the default), `ci` or `nightly`.

`register()` is called once, by `tests/conftest.py`. With CI=true the examples are the same every
time: a change is judged by what it changed; elsewhere each run looks somewhere else. Timing is
never a failure here: the readable kernel is slow by design and the machine may be busy.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

EXAMPLES = {"fast": 60, "ci": 1000, "nightly": 20000}


def register() -> None:
    """Make the profiles known and load the one that the environment asks for."""
    for name, examples in EXAMPLES.items():
        settings.register_profile(
            name,
            max_examples=examples,
            deadline=None,
            derandomize=os.environ.get("CI") == "true",
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            print_blob=True,
        )
    settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))
