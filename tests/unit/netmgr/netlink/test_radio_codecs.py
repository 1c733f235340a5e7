"""What radios can do, from messages of nl80211; and the meaning of notifications."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netmgr.model.facts import WifiRadio
from netmgr.netlink.codecs import encode, marshal
from netmgr.netlink.nl80211 import changes_of
from netmgr.netlink.radio_codecs import (
    ACCESS_POINT,
    EXTENDED_SAE_OFFLOAD,
    FEATURE_SAE,
    STATION,
    RadioMessage,
    radios_of,
)

FAMILY = 0x1C
P2P = 9


def message(**attributes: Any) -> Any:
    data = encode(RadioMessage, FAMILY, 0, 1, {"cmd": 3}, list(attributes.items()))
    (decoded,) = marshal({FAMILY: RadioMessage}).parse(data)
    return decoded


def kinds(*numbers: int) -> dict[str, Any]:
    return {"attrs": [[f"TYPE{number}", True] for number in numbers]}


def combination(maximum: int, *limits: tuple[int, tuple[int, ...]]) -> dict[str, Any]:
    entries = [{"attrs": [["MAX", number], ["TYPES", kinds(*allowed)]]} for number, allowed in limits]
    return {"attrs": [["LIMITS", entries], ["MAXNUM", maximum], ["NUM_CHANNELS", 1]]}


def radio(*combinations: dict[str, Any], supported: tuple[int, ...] = (STATION, ACCESS_POINT)) -> WifiRadio:
    (read,) = radios_of(
        [
            message(WIPHY=3, SUPPORTED_IFTYPES=kinds(*supported)),
            message(WIPHY=3, INTERFACE_COMBINATIONS=list(combinations)),
            message(WIPHY=3, FEATURE_FLAGS=0),
        ]
    )
    return read


@pytest.mark.parametrize(
    ("combinations", "both"),
    [
        ([], False),
        ([combination(2, (1, (STATION,)), (1, (ACCESS_POINT,)))], True),
        ([combination(1, (1, (STATION,)), (1, (ACCESS_POINT,)))], False),
        ([combination(2, (1, (STATION, ACCESS_POINT)))], False),
        ([combination(2, (2, (STATION, ACCESS_POINT)))], True),
        ([combination(3, (1, (STATION,)), (2, (P2P,)))], False),
        ([combination(2, (2, (STATION,))), combination(3, (2, (STATION,)), (1, (P2P, ACCESS_POINT)))], True),
    ],
)
def test_combinations_say_whether_a_hotspot_and_a_client_fit(combinations: list[dict[str, Any]], both: bool) -> None:
    assert radio(*combinations).both is both
    assert not radio(*combinations, supported=(STATION,)).both


def test_parts_of_several_radios_are_sorted() -> None:
    offload = bytearray(8)
    offload[EXTENDED_SAE_OFFLOAD // 8] |= 1 << EXTENDED_SAE_OFFLOAD % 8
    messages = [
        message(WIPHY=1, SUPPORTED_IFTYPES=kinds(STATION, ACCESS_POINT)),
        message(WIPHY=0, SUPPORTED_IFTYPES=kinds(STATION)),
        message(WIPHY=1, FEATURE_FLAGS=FEATURE_SAE),
        message(WIPHY=2, EXT_FEATURES=bytes(offload)),
    ]
    assert radios_of(messages) == (
        WifiRadio(number=0, hotspot=False, both=False, sae=False),
        WifiRadio(number=1, hotspot=True, both=False, sae=True),
        WifiRadio(number=2, hotspot=False, both=False, sae=True),
    )


def notification(command: int, kind: int = FAMILY) -> bytes:
    return struct.pack("=IHHIIBBH", 20, kind, 0, 0, 0, command, 1, 0)


def test_notifications_say_what_has_changed() -> None:
    assert changes_of(notification(34) + notification(7) + notification(99), FAMILY) == {"scan", "interfaces"}
    assert changes_of(notification(36), FAMILY) == {"country"}
    assert changes_of(notification(34, kind=FAMILY + 1), FAMILY) == set()


@given(st.binary())
def test_no_notification_raises(data: bytes) -> None:
    changes_of(data, FAMILY)
