"""What the tests with Apache RocketMQ's own servers have in common."""

from __future__ import annotations

import pytest

from support import apache, tools


@pytest.fixture(params=apache.VERSIONS)
def apache_version(request: pytest.FixtureRequest) -> str:
    """Return a release that is here."""
    return had_here(str(request.param))


def had_here(version: str) -> str:
    """Return a release; one that cannot be had is a named skip, a failure in CI."""
    try:
        apache.fetch(version)
    except apache.NotFetched as error:
        if tools.required():
            pytest.fail(f"{error}; with CI=true no test may be left out", pytrace=False)
        pytest.skip(str(error))
    return version
