"""Names: from those of the published API to those of Python."""

from __future__ import annotations

import re
from typing import Final

# Words of an RPC's name, first match wins: UUIDs | PWM before Frequency | Get | 3D | anything else in lower case.
_WORDS: Final = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z][a-z]+|[0-9]+[A-Z]*(?![a-z])|[a-z]+")

NAME_FIELDS: Final = ("name", "board_name", "controller")
"""Request fields that say which resource is meant; the first that a request has counts."""

EXTRA: Final = "extra"


def python_name(rpc: str) -> str:
    """Name of the Python method for an RPC.

    >>> python_name("SetPWMFrequency"), python_name("Get3DModels"), python_name("ListUUIDs")
    ('set_pwm_frequency', 'get_3d_models', 'list_uuids')
    """
    return "_".join(_WORDS.findall(rpc)).lower()


def enum_prefix(names: list[str]) -> str:
    """What all value names of an enum begin with, up to an underscore: `POWER_MODE_` of `POWER_MODE_NORMAL`, ..."""
    if len(names) < 2:
        return ""
    first, last = min(names), max(names)
    common = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last)))
    return first[: first.rfind("_", 0, common) + 1]
