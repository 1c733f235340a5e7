"""Answers of wpa_supplicant as records. Pure.

SSIDs and flags come from the air, so nothing here raises an error on any text; what cannot be read is left out.
"""

from __future__ import annotations

import re
from typing import Final

from netmgr.model.facts import AccessPoint, Association, Cipher

MAX_SSID: Final = 32
BSS_MASK: Final = "21a87"
"""Fields of `BSS` that `access_points` needs: id, bssid, freq, level, age, flags, ssid and the delimiters."""
DELIMITER: Final = "===="
_BSSID: Final = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_NUMBER: Final = re.compile(r"-?[0-9]{1,9}")
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|[nrte\"\\])")
_ESCAPED: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"e": b"\033", b'"': b'"', b"\\": b"\\"}
_FLAG: Final = re.compile(r"\[([^][]{1,100})\]")
_PERSONAL: Final = frozenset({"PSK", "PSK-SHA256", "FT/PSK"})
_SAE: Final = frozenset({"SAE", "FT/SAE", "SAE-EXT-KEY", "FT/SAE-EXT-KEY"})
_LONGEST_KEYS_FIRST: Final = ("FT/SAE-EXT-KEY", "SAE-EXT-KEY", "FT/SAE", "SAE", "PSK-SHA256", "FT/PSK", "PSK", "OWE")


def unescape(text: str) -> bytes:
    """Return the bytes of an SSID in the form of C's printf, which wpa_supplicant writes; other escapes stay."""

    def byte(match: re.Match[bytes]) -> bytes:
        escape = match[1]
        return bytes([int(escape[1:], 16)]) if len(escape) == 3 else _ESCAPED[escape]

    return _ESCAPE.sub(byte, text.encode("utf-8", "surrogateescape"))


def fields(text: str) -> dict[str, str]:
    """Return the values of lines `key=value`; the first one if a key is repeated."""
    values: dict[str, str] = {}
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        if equals:
            values.setdefault(key, value)
    return values


def cipher(flags: str) -> Cipher:
    """Return what an access point requires, from flags such as `[WPA2-PSK+SAE-CCMP][ESS]`."""
    words = _FLAG.findall(flags)
    keys: dict[str, set[str]] = {"WPA-": set(), "WPA2-": set(), "RSN-": set()}
    enterprise = False
    for word in words:
        for version in keys:
            if word.startswith(version):
                rest = word.removeprefix(version)
                enterprise = enterprise or "EAP" in rest
                keys[version] |= _key_managements(rest)
    new = keys["WPA2-"] | keys["RSN-"]
    if enterprise:
        return "enterprise"
    if new & _SAE:
        return "wpa2-wpa3" if new & _PERSONAL else "wpa3"
    if new & _PERSONAL:
        return "wpa2"
    if "OWE" in new:
        return "owe"
    if keys["WPA-"]:
        return "wpa1"
    return "wep" if "WEP" in words else "open"


def _key_managements(rest: str) -> set[str]:
    """Return the key managements of `PSK+FT/SAE-CCMP+TKIP-preauth`, whose parts may contain hyphens themselves."""
    names = set()
    for part in rest.split("+"):
        name = next((name for name in _LONGEST_KEYS_FIRST if part == name or part.startswith(f"{name}-")), "")
        if not name:  # the ciphers begin
            break
        names.add(name)
        if part != name:
            break
    return names


def access_points(answer: str, now: float) -> tuple[tuple[AccessPoint, ...], int | None]:
    """Return the access points in an answer to `BSS RANGE=... MASK=BSS_MASK`, and the highest id; None if it has none.

    `now` is the monotonic time of the answer. An SSID that is hidden as zeros is empty.
    """
    points: list[AccessPoint] = []
    highest: int | None = None
    for block in answer.split(f"{DELIMITER}\n"):
        values = fields(block)
        number = _number(values.get("id", ""))
        if number is not None:
            highest = number if highest is None else max(highest, number)
        point = _access_point(values, now)
        if point is not None:
            points.append(point)
    return tuple(points), highest


def _access_point(values: dict[str, str], now: float) -> AccessPoint | None:
    frequency, signal = _number(values.get("freq", "")), _number(values.get("level", ""))
    bssid, ssid = values.get("bssid", ""), unescape(values.get("ssid", ""))
    if frequency is None or signal is None or not _BSSID.fullmatch(bssid) or len(ssid) > MAX_SSID:
        return None
    return AccessPoint(
        ssid=ssid.strip(b"\0") and ssid,
        bssid=bssid,
        frequency=frequency,
        signal=signal,
        cipher=cipher(values.get("flags", "")),
        seen=now - max(0, _number(values.get("age", "")) or 0),
    )


def association(status: str, signal: str) -> Association | None:
    """Return the association in the answers to STATUS and SIGNAL_POLL; None if the authentication is not complete."""
    values = fields(status)
    bssid, frequency = values.get("bssid", ""), _number(values.get("freq", ""))
    if values.get("wpa_state") != "COMPLETED" or values.get("mode") != "station":
        return None
    if frequency is None or not _BSSID.fullmatch(bssid):
        return None
    return Association(
        ssid=unescape(values.get("ssid", ""))[:MAX_SSID],
        bssid=bssid,
        frequency=frequency,
        signal=_number(fields(signal).get("RSSI", "")),
    )


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None
