"""What the portal shows: the list of networks, and times for people."""

from __future__ import annotations

import pytest

from netmgr.model.facts import AccessPoint
from netmgr.service.backend import MAX_SHOWN, minutes, seen
from tests.unit.netmgr.provisioning.device import wifi


def point(ssid: bytes, signal: int, bssid: str = "") -> AccessPoint:
    return AccessPoint(ssid=ssid, bssid=bssid, frequency=2412, signal=signal, cipher="wpa2", seen=0.0)


def test_the_strongest_access_point_of_each_network_is_shown_strongest_first() -> None:
    points = [point(b"home", -70), point(b"home", -50), point(b"office", -60), point(b"", -20)]
    shown = seen(points, {b"office"}, {b"home": wifi("home")}, {"home": "the password is wrong"})
    assert [(entry.ssid, entry.percent, entry.connected, entry.last_error) for entry in shown] == [
        (b"home", 80, False, "the password is wrong"),
        (b"office", 60, True, ""),
    ]


def test_a_neighbor_cannot_fill_the_page() -> None:
    assert len(seen([point(str(number).encode(), -50) for number in range(1000)], set(), {}, {})) == MAX_SHOWN


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "2 seconds"), (59.6, "60 seconds"), (120, "2 minutes"), (3600, "60 minutes")]
)
def test_times(seconds: float, text: str) -> None:
    assert minutes(seconds) == text
