"""Tokens of the portal's forms."""

from __future__ import annotations

import pytest

from netmgr.portal.access import TOKEN_LIFETIME, Visitors
from schema.errors import MachineError


def test_a_form_can_be_sent_until_its_token_has_expired() -> None:
    visitors = Visitors(key=b"k" * 32, hosts=("10.42.0.1",))
    token = visitors.token("02:00:00:00:00:01", 100.0)
    visitors.check_form("02:00:00:00:00:01", token, "10.42.0.1", None, 100.0 + TOKEN_LIFETIME)
    with pytest.raises(MachineError, match="too old"):
        visitors.check_form("02:00:00:00:00:01", token, "10.42.0.1", None, 100.1 + TOKEN_LIFETIME)
    with pytest.raises(MachineError, match="another device"):
        visitors.check_form("02:00:00:00:00:02", token, "10.42.0.1", None, 100.0)
