"""NMEA 0183: sentences of satellite receivers and compasses, combined into the current facts. Pure.

Sentences, fields and units are those of IEC 61162-1 (NMEA 0183), as described in u-blox 8 / M8 Receiver Description,
UBX-13003221, section "NMEA Protocol", which is also the source of most examples in the tests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

LONGEST: Final = 256  # maximum bytes of a sentence; the standard says 82, but receivers exceed it
METRES_PER_SECOND_PER_KNOT: Final = 1852 / 3600
SYSTEMS: Final = {
    "GP": "gps",
    "GL": "glonass",
    "GA": "galileo",
    "GB": "beidou",
    "BD": "beidou",
    "GQ": "qzss",
    "QZ": "qzss",
    "GI": "navic",
    "GN": "combined",
}
"""Satellite systems by talker id."""

QUALITY: Final = {
    0: "no fix",
    1: "GPS",
    2: "differential",
    3: "precise",
    4: "RTK",
    5: "float RTK",
    6: "dead reckoning",
    7: "manual",
    8: "simulated",
}
"""Quality of the position fix by GGA field 6."""

_MODE: Final = {"N": 0, "A": 1, "D": 2, "P": 3, "R": 4, "F": 5, "E": 6, "M": 7, "S": 8}  # mode indicator -> quality
_NUMBER: Final = re.compile(r"[-+]?(\d++\.?+\d*+|\.\d++)")
_ANGLE: Final = re.compile(r"(\d{1,3})(\d\d(?:\.\d*)?)")  # (d)ddmm.mmmm
_ADDRESS: Final = re.compile(r"[A-Z0-9]{3,8}")


class Sentence(NamedTuple):
    """A sentence. `kind` is the three letters after the two of the talker; proprietary sentences have the talker P."""

    talker: str
    kind: str
    fields: tuple[str, ...]

    def field(self, number: int) -> str:
        """Return a field by its number in the standard, from 1; empty if it is missing."""
        return self.fields[number - 1] if number <= len(self.fields) else ""


def checksum(body: bytes) -> int:
    """Return the checksum of the characters between $ and *."""
    result = 0
    for byte in body:
        result ^= byte
    return result


def sentence(body: str) -> bytes:
    """Encode a sentence, given the text between $ and *."""
    return b"$%s*%02X\r\n" % (body.encode("ascii"), checksum(body.encode("ascii")))


def parse(line: bytes) -> Sentence:
    """Parse the sentence at the end of a line; ValueError with the reason if there is no valid one."""
    start = line.rfind(b"$")
    if start < 0 or len(line) - start > LONGEST:
        raise ValueError("no sentence")
    body, star, stated = line[start + 1 :].rstrip().rpartition(b"*")
    if not star:
        raise ValueError("no checksum")
    try:
        wrong = len(stated) != 2 or int(stated, 16) != checksum(body)
    except ValueError:
        wrong = True
    if wrong:
        raise ValueError("wrong checksum")
    try:
        address, *fields = body.decode("ascii").split(",")
    except UnicodeDecodeError:
        raise ValueError("not ASCII") from None
    if not _ADDRESS.fullmatch(address):
        raise ValueError("no address")
    if address.startswith("P"):
        return Sentence("P", address[1:], tuple(fields))
    return Sentence(address[:2], address[2:], tuple(fields))


class Receiver:
    """Collects the facts that a receiver has reported, each with its time.

    `now` is the time of any clock in seconds. Facts: `position` (latitude, longitude in degrees), `altitude` (m above
    mean sea level), `quality`, `satellites_used`, `hdop`, `vdop`, `pdop`, `speed` (m/s), `course` (degrees from true
    north, over ground), `heading` (degrees from true north), `utc` (datetime), `error` (standard deviations of
    latitude, longitude and altitude in m). A sentence without a fix removes the facts about the position.
    """

    def __init__(self) -> None:
        self.sentences = 0
        self.rejected: dict[str, int] = {}  # number of invalid lines by reason
        self._facts: dict[str, tuple[Any, float]] = {}
        self._has_gga = False

    def feed(self, line: bytes, now: float) -> None:
        """Process a line; invalid ones are counted."""
        try:
            message = parse(line)
            if (decode := _DECODERS.get(message.kind)) is not None and message.talker != "P":
                facts = decode(message)
                self._update(message.kind, facts, now)
            self.sentences += 1
        except ValueError as error:
            reason = str(error)
            self.rejected[reason] = self.rejected.get(reason, 0) + 1

    def _update(self, kind: str, facts: Mapping[str, Any], now: float) -> None:
        self._has_gga = self._has_gga or kind == "GGA"
        if facts.get("quality") == 0:
            for name in ("position", "altitude", "speed", "course", "error"):
                self._facts.pop(name, None)
        for name, value in facts.items():
            if value is None:
                self._facts.pop(name, None)
            elif not (name == "quality" and value and kind == "RMC" and self._has_gga):  # GGA is more precise
                self._facts[name] = (value, now)

    def get(self, name: str, now: float, max_age: float) -> Any:
        """Return a fact that is at most `max_age` seconds old, or None."""
        value, time = self._facts.get(name, (None, 0.0))
        return value if now - time <= max_age else None

    def age(self, name: str, now: float) -> float | None:
        """Return the age of a fact in seconds; None if it is not known."""
        fact = self._facts.get(name)
        return None if fact is None else now - fact[1]

    def in_view(self, now: float, max_age: float) -> dict[str, int]:
        """Return the number of satellites in view by system."""
        counts: dict[str, int] = {}
        for name in self._facts:
            prefix, _, rest = name.partition(":")
            if prefix == "in_view" and (count := self.get(name, now, max_age)) is not None:
                system = rest.partition(":")[0]
                counts[system] = max(counts.get(system, 0), count)  # the same satellites on another signal
        return counts


def number(text: str) -> float | None:
    """Parse a decimal number; None if empty; ValueError if malformed."""
    if not text:
        return None
    if not _NUMBER.fullmatch(text):
        raise ValueError("malformed number")
    return float(text)


def angle(text: str, side: str, positive: str, negative: str, limit: int) -> float | None:
    """Convert ddmm.mmmm and N, S, E or W to degrees; None if empty; ValueError if malformed."""
    if not text and not side:
        return None
    match = _ANGLE.fullmatch(text)
    if match is None or side not in (positive, negative):
        raise ValueError("malformed position")
    minutes = float(match[2])
    degrees = int(match[1]) + minutes / 60
    if minutes >= 60 or degrees > limit:
        raise ValueError("malformed position")
    return degrees if side == positive else -degrees


def _position(message: Sentence, first: int) -> tuple[float, float] | None:
    latitude = angle(message.field(first), message.field(first + 1), "N", "S", 90)
    longitude = angle(message.field(first + 2), message.field(first + 3), "E", "W", 180)
    return None if latitude is None or longitude is None else (latitude, longitude)


def _count(text: str) -> int | None:
    value = number(text)
    if value is not None and (value != int(value) or value < 0):
        raise ValueError("malformed number")
    return None if value is None else int(value)


def _course(text: str) -> float | None:
    value = number(text)
    if value is not None and not 0 <= value <= 360:
        raise ValueError("malformed angle")
    return None if value is None else value % 360


def _gga(message: Sentence) -> dict[str, Any]:
    quality = _count(message.field(6)) or 0
    if not quality:
        return {"quality": 0}
    return {
        "quality": quality,
        "position": _position(message, 2),
        "satellites_used": _count(message.field(7)),
        "hdop": number(message.field(8)),
        "altitude": number(message.field(9)),
    }


def _rmc(message: Sentence) -> dict[str, Any]:
    quality = _MODE.get(message.field(12) or "A", 1) if message.field(2) == "A" else 0
    facts: dict[str, Any] = {"quality": quality, "utc": _utc(message.field(1), message.field(9))}
    if not quality:
        return facts
    knots = number(message.field(7))
    speed = None if knots is None else knots * METRES_PER_SECOND_PER_KNOT
    return facts | {"position": _position(message, 3), "speed": speed, "course": _course(message.field(8))}


def _utc(time: str, date: str) -> datetime | None:
    if not time or not date:
        return None
    try:
        return datetime.strptime(f"{date}{time[:6]}", "%d%m%y%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        raise ValueError("malformed time") from None


def _vtg(message: Sentence) -> dict[str, Any]:
    if message.field(9) == "N":
        return {"speed": None, "course": None}
    knots, kmh = number(message.field(5)), number(message.field(7))
    speed = knots * METRES_PER_SECOND_PER_KNOT if knots is not None else kmh / 3.6 if kmh is not None else None
    return {"speed": speed, "course": _course(message.field(1))}


def _gsa(message: Sentence) -> dict[str, Any]:
    if message.field(2) == "1":  # no fix; receivers write 99.99 then
        return {"pdop": None, "hdop": None, "vdop": None}
    return {"pdop": number(message.field(15)), "hdop": number(message.field(16)), "vdop": number(message.field(17))}


def _gsv(message: Sentence) -> dict[str, Any]:
    total = _count(message.field(3))
    # After four fields for each satellite, the signal number may follow (since NMEA 0183 4.10).
    signal = message.fields[-1] if message.fields and len(message.fields) % 4 == 0 else ""
    if message.talker not in SYSTEMS or len(signal) > 1:
        raise ValueError("unknown satellites")
    return {f"in_view:{SYSTEMS[message.talker]}:{signal}": total}


def _gst(message: Sentence) -> dict[str, Any]:
    deviations = tuple(number(message.field(index)) for index in (6, 7, 8))
    return {"error": None if None in deviations else deviations}


def _hdt(message: Sentence) -> dict[str, Any]:
    return {"heading": _course(message.field(1))}


_DECODERS: Final[Mapping[str, Callable[[Sentence], dict[str, Any]]]] = {
    "GGA": _gga,
    "RMC": _rmc,
    "VTG": _vtg,
    "GSA": _gsa,
    "GSV": _gsv,
    "GST": _gst,
    "HDT": _hdt,
}
