"""Conversion of names of the published API to Python names. Pure."""

from __future__ import annotations

import re
from typing import Final

# Words of an RPC's name, first match wins: UUIDs | PWM before Frequency | Get | 3D | anything else in lower case.
_WORDS: Final = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z][a-z]+|[0-9]+[A-Z]*(?![a-z])|[a-z]+")

NAME_FIELDS: Final = ("name", "board_name", "controller")
"""Request fields with the name of the resource; the first field that a request has is used."""

EXTRA: Final = "extra"


def python_name(rpc: str) -> str:
    """Return the name of the Python method for an RPC.

    >>> python_name("SetPWMFrequency"), python_name("Get3DModels"), python_name("ListUUIDs")
    ('set_pwm_frequency', 'get_3d_models', 'list_uuids')
    """
    return "_".join(_WORDS.findall(rpc)).lower()


def enum_prefix(names: list[str]) -> str:
    """Return the common prefix of the value names of an enum, such as `POWER_MODE_`, up to its last underscore."""
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    common = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[: first.rfind("_", 0, common) + 1]
