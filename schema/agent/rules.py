"""Types of settings that the type system cannot describe: the rule of each text, and numbers with a unit of time."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Interface
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import inspect

from schema.versions import version_form

MINUTE: Final = 60.0
HOUR: Final = 3600.0
LONGEST: Final = 100 * 365 * 24 * HOUR
"""Longest time of a setting, in seconds; a century is far from every overflow of clocks and libraries."""
ENVIRONMENT_BYTES: Final = 64 << 10
"""Bytes of all variables of a setting together; Linux allows 128 KiB for one, execve(2)."""


@dataclass(frozen=True)
class Rule:
    """Condition of a value. A problem says "is not `noun`" and, as the remedy, "write `allowed`"."""

    noun: str
    allowed: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class TimeUnit:
    """Unit of a bare number in a document, and its range: from 1 of the unit to 100 years. In Python it is seconds."""

    name: str
    seconds: float
    zero: bool = False  # 0 is valid too

    @property
    def allowed(self) -> str:
        """Range in words."""
        return f"{'0 or ' if self.zero else ''}at least 1 {self.name.removesuffix('s')}, at most 100 years"

    def includes(self, seconds: float) -> bool:
        """Return whether a time is in the range."""
        return self.seconds <= seconds <= LONGEST or (self.zero and seconds == 0)


def ruled(noun: str, allowed: str, holds: Callable[[Any], bool]) -> msgspec.Meta:
    """Return the annotation of a field with a rule."""
    return msgspec.Meta(extra={"rule": Rule(noun, allowed, holds)})


def _is_printable(text: str) -> bool:
    return not re.search(r"[\x00-\x1f\x7f]", text)


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def _is_ssid(text: str) -> bool:
    return 1 <= _bytes(text) <= 32 and _is_printable(text)


def _is_passphrase(text: str) -> bool:
    return bool(re.fullmatch(r"[ -~]{8,63}|[0-9A-Fa-f]{64}", text))


def _is_interface(text: str) -> bool:
    return bool(re.fullmatch(r"[^\s/:\x00-\x1f\x7f]+", text)) and _bytes(text) <= 15 and text not in (".", "..")


def _is_address(text: str, kind: Callable[[str], object] = IPv4Address) -> bool:
    try:
        kind(text)
    except ValueError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    return bool(re.fullmatch(r"[0-9.]+/[0-9]{1,2}", text)) and _is_address(text, IPv4Interface)


def _are_addresses(texts: Sequence[str]) -> bool:
    return all(map(_is_address, texts))


def _is_filter(text: str) -> bool:
    return not text or all(word.strip().removeprefix("-").strip() for word in text.split(","))


def _is_environment(variables: Mapping[str, str]) -> bool:
    """Return whether systemd, the kernel and dash accept these variables: otherwise the program could not be started.

    dash ends before it runs a script, here the launcher, if OPTIND is not a number.
    """
    size = sum(_bytes(name) + _bytes(value) for name, value in variables.items())
    names = all(re.fullmatch("[A-Za-z_][A-Za-z0-9_]*", name) for name in variables)
    return (
        names
        and "OPTIND" not in variables
        and size <= ENVIRONMENT_BYTES
        and not any("\0" in value for value in variables.values())
    )


def _is_time(text: str) -> bool:
    return bool(re.fullmatch(r"([01][0-9]|2[0-3]):[0-5][0-9]", text))


def _empty_or(holds: Callable[[str], bool]) -> Callable[[str], bool]:
    return lambda text: not text or holds(text)


_PASSPHRASE: Final = "8 to 63 ASCII characters or 64 hexadecimal digits"
_SSID: Final = "at most 32 bytes without control characters"
_INTERFACE: Final = "at most 15 bytes without spaces, / and :"

Version = Annotated[
    str,
    ruled(
        "a version",
        "stable, dev, a semantic version such as 1.2.3, or an https:// or file:/// URL",
        lambda text: version_form(text) is not None,
    ),
]
Prefix = Annotated[str, ruled("the beginning of an SSID", f"{_SSID}, not empty", _is_ssid)]
Ssid = Annotated[str, ruled("an SSID", _SSID, _empty_or(_is_ssid))]
Passphrase = Annotated[str, ruled("a wifi password", _PASSPHRASE, _empty_or(_is_passphrase))]
Interface = Annotated[str, ruled("the name of a network interface", _INTERFACE, _empty_or(_is_interface))]
Cidr = Annotated[
    str,
    ruled(
        "an IPv4 address with a prefix length",
        "auto, or an address such as 192.168.1.20/24",
        lambda text: text == "auto" or _is_cidr(text),
    ),
]
Country = Annotated[
    str,
    ruled("a country", "two capital letters such as DE", lambda text: not text or bool(re.fullmatch("[A-Z]{2}", text))),
]
Gateway = Annotated[str, ruled("an IPv4 address", "an address such as 192.168.1.1", _empty_or(_is_address))]
Addresses = Annotated[
    tuple[str, ...], ruled("a list of IPv4 addresses", 'addresses such as ["192.168.1.1"]', _are_addresses)
]
LogFilter = Annotated[
    str, ruled("a list of identifiers", "identifiers separated by commas, such as all,-dbus", _is_filter)
]
Environment = Annotated[
    dict[str, str],
    ruled(
        "a set of environment variables",
        "names of letters, digits and _ without a leading digit, not OPTIND, and values without NUL characters, "
        f"of at most {ENVIRONMENT_BYTES >> 10} KiB together",
        _is_environment,
    ),
]
Minutes = Annotated[float, msgspec.Meta(extra={"time": TimeUnit("minutes", MINUTE)})]
MinutesOrZero = Annotated[float, msgspec.Meta(extra={"time": TimeUnit("minutes", MINUTE, zero=True)})]
Hours = Annotated[float, msgspec.Meta(extra={"time": TimeUnit("hours", HOUR)})]
HoursOrZero = Annotated[float, msgspec.Meta(extra={"time": TimeUnit("hours", HOUR, zero=True)})]
TimeOfDay = Annotated[str, ruled("a time of day", "hours and minutes from 00:00 to 23:59, such as 22:30", _is_time)]
Weekdays = Annotated[
    tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...],
    ruled("a list of weekdays", "at least one of mon, tue, wed, thu, fri, sat and sun", bool),
]
FEW: Final = ruled("a list of this length", "at most 50 windows", lambda windows: len(windows) <= 50)
Megabytes = Annotated[int, msgspec.Meta(ge=-1, le=1_000_000, extra={"unit": "MB"})]
Priority = Annotated[int, msgspec.Meta(ge=-999, le=999)]
Metric = Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)]


@functools.cache
def fields_of(cls: type[msgspec.Struct]) -> Mapping[str, inspect.Field]:
    """Return the fields of a section by their key in documents."""
    info = inspect.type_info(cls)
    assert isinstance(info, inspect.StructType)
    return {field.encode_name: field for field in info.fields}


def extra_of(field: inspect.Field) -> Mapping[str, Any]:
    """Return what the type of a field says in addition to its Python type: `rule`, `time` or `unit`."""
    return (field.type.extra or {}) if isinstance(field.type, inspect.Metadata) else {}


@functools.cache
def rules_of(cls: type[msgspec.Struct]) -> Sequence[tuple[str, str, Rule]]:
    """Return name, key and rule of each field that has a rule."""
    return [
        (field.name, key, extra_of(field)["rule"]) for key, field in fields_of(cls).items() if "rule" in extra_of(field)
    ]
