"""Every failure has words."""

from __future__ import annotations

from netmgr.model.events import JoinFailure
from netmgr.model.words import WORDS, explained


def test_every_failure_has_a_reason_and_a_remedy() -> None:
    assert set(WORDS) == set(JoinFailure)
    assert explained(JoinFailure.NO_ADDRESS, "no offer") == (
        "the network gives this device no address (no offer): check DHCP of the router, or set a static address"
    )
