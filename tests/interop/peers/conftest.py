"""Makes the assertions of scenarios say what they compared."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("interop.peers.scenarios")
