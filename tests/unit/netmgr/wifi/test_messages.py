"""Answers of wpa_supplicant: recorded ones, and any text."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from netmgr.model.facts import Cipher
from netmgr.wifi import messages

BSS = """id=0
bssid=02:00:00:00:01:00
freq=2412
level=-30
age=3
flags=[WPA2-PSK-CCMP][ESS]
ssid=caf\\xc3\\xa9 \\"home\\"
====
id=7
bssid=02:00:00:00:02:00
freq=5180
level=-71
age=0
flags=[WPA2-SAE-CCMP][SAE-H2E][ESS]
ssid=\\x00\\x00\\x00
####
"""
STATUS = """bssid=02:00:00:00:01:00
freq=2412
ssid=caf\\xc3\\xa9
id=0
mode=station
pairwise_cipher=CCMP
key_mgmt=WPA2-PSK
wpa_state=COMPLETED
address=02:00:00:00:00:00
"""


def escaped(data: bytes) -> str:
    """Escape as printf_encode of wpa_supplicant does."""
    special = {0x22: '\\"', 0x5C: "\\\\", 0x1B: "\\e", 0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t"}
    return "".join(special.get(byte) or (chr(byte) if 32 <= byte <= 126 else f"\\x{byte:02x}") for byte in data)


@given(st.binary(max_size=32))
@example(b"\\x41\\\\x41")
def test_every_ssid_survives_the_escaping(ssid: bytes) -> None:
    assert messages.unescape(escaped(ssid)) == ssid


@pytest.mark.parametrize(
    ("flags", "cipher"),
    [
        ("[ESS]", "open"),
        ("", "open"),
        ("[OWE-TRANS-OPEN][ESS]", "open"),
        ("[WPA2-OWE-CCMP][ESS]", "owe"),
        ("[WEP][ESS]", "wep"),
        ("[WPA-PSK-TKIP][ESS]", "wpa1"),
        ("[WPA-PSK-CCMP+TKIP][WPA2-PSK-CCMP+TKIP][WPS][ESS]", "wpa2"),
        ("[WPA2-PSK-CCMP-preauth][ESS]", "wpa2"),
        ("[WPA2-PSK+PSK-SHA256-CCMP][ESS]", "wpa2"),
        ("[WPA2-FT/PSK-CCMP][ESS]", "wpa2"),
        ("[WPA2-SAE-CCMP][SAE-H2E][ESS]", "wpa3"),
        ("[RSN-SAE+FT/SAE-CCMP][ESS]", "wpa3"),
        ("[WPA2-PSK+SAE-CCMP][ESS]", "wpa2-wpa3"),
        ("[WPA2-PSK+PSK-SHA256+FT/SAE-CCMP][ESS]", "wpa2-wpa3"),
        ("[WPA2-EAP-CCMP][ESS]", "enterprise"),
        ("[WPA2-EAP-SUITE-B-192-GCMP-256][ESS]", "enterprise"),
        ("[WPA2-EAP+FT/EAP-CCMP][ESS]", "enterprise"),
    ],
)
def test_flags_give_the_cipher(flags: str, cipher: Cipher) -> None:
    assert messages.cipher(flags) == cipher


def test_access_points_are_read() -> None:
    points, highest = messages.access_points(BSS, now=100.0)
    assert highest == 7
    assert [(point.ssid, point.frequency, point.signal, point.seen) for point in points] == [
        ('café "home"'.encode(), 2412, -30, 97.0),
        (b"", 5180, -71, 100.0),
    ]
    assert [point.cipher for point in points] == ["wpa2", "wpa3"]


def test_an_ssid_that_is_too_long_is_left_out() -> None:
    points, highest = messages.access_points(BSS.replace("ssid=caf", f"ssid={'x' * 30}"), now=0.0)
    assert ([point.frequency for point in points], highest) == ([5180], 7)


def test_only_a_complete_authentication_is_an_association() -> None:
    association = messages.association(STATUS, "RSSI=-44\nLINKSPEED=54\n")
    assert association is not None
    assert (association.ssid, association.bssid, association.signal) == ("café".encode(), "02:00:00:00:01:00", -44)
    assert messages.association(STATUS.replace("COMPLETED", "4WAY_HANDSHAKE"), "") is None
    assert messages.association(STATUS.replace("station", "AP"), "") is None
    without_signal = messages.association(STATUS, "FAIL")
    assert without_signal is not None
    assert without_signal.signal is None


LINES = st.sampled_from(["id=1", "bssid=02:00:00:00:01:00", "freq=2412", "level=-3", "ssid=\\x4", "====", "flags=[["])


@given(st.one_of(st.text(), st.lists(st.one_of(LINES, st.text())).map("\n".join)))
def test_no_answer_raises(text: str) -> None:
    points, _ = messages.access_points(text, now=0.0)
    assert all(len(point.ssid) <= messages.MAX_SSID for point in points)
    messages.association(text, text)
    messages.cipher(text)
