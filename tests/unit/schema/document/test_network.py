"""Settings of the network in a machine's document."""

from __future__ import annotations

import pytest

from schema.document.network import Sessions
from schema.errors import ConfigError


def test_the_heartbeat_window_is_from_30_ms_to_a_minute() -> None:
    for seconds in (0.03, 60.0):
        assert Sessions(heartbeat_window=seconds).heartbeat_window == seconds
    for seconds in (0.0299, 60.001):
        with pytest.raises(ConfigError, match="out of range"):
            Sessions(heartbeat_window=seconds)
