"""The udev rules that ship with this project: where they are, which groups they need, whether they are in force."""

from __future__ import annotations

import re
import sysconfig
from enum import Enum
from pathlib import Path
from typing import Final

from hal.inventory.sysfs import ROOT

INSTALLED: Final = "etc/udev/rules.d"
_PACKAGED: Final = ("usr/lib/udev/rules.d", "lib/udev/rules.d", "run/udev/rules.d")
_USER_SCHEME: Final = sysconfig.get_preferred_scheme("user")  # of pip install --user; beside is that of --target
_GROUP: Final = re.compile(r'(?:GROUP=|GROUP:=)"([^"$]+)"|chgrp ([a-z]+) ')


class State(Enum):
    """Whether the rules of this computer are ours."""

    CURRENT = "current"
    OLD = "another version"
    ABSENT = "not installed"


def shipped() -> tuple[Path, ...]:
    """The files: beside the packages in a checkout, below share/machine-runtime in an installed wheel."""
    beside = Path(__file__).resolve().parents[2]
    installed = [beside, Path(sysconfig.get_path("data")), Path(sysconfig.get_path("data", _USER_SCHEME))]
    places = [beside / "udev", *(place / "share/machine-runtime/udev" for place in installed)]
    return next((files for place in places if (files := tuple(sorted(place.glob("*.rules"))))), ())


def state(root: Path = ROOT) -> State:
    """Compare what is installed with what ships; the folder of the administrator goes before those of packages."""
    found = [_state(rules, root) for rules in shipped()]
    if not found or State.ABSENT in found:
        return State.ABSENT
    return State.OLD if State.OLD in found else State.CURRENT


def _state(rules: Path, root: Path) -> State:
    for folder in (INSTALLED, *_PACKAGED):
        try:
            text = (root / folder / rules.name).read_text()
        except OSError:
            continue
        return State.CURRENT if text == rules.read_text() else State.OLD
    return State.ABSENT


def groups() -> tuple[str, ...]:
    """The groups that the rules name, in their order."""
    text = "".join(rules.read_text() for rules in shipped())
    return tuple(dict.fromkeys(first or second for first, second in _GROUP.findall(text)))
