"""The udev rules of this project: their files, the groups that they need, and whether they are installed."""

from __future__ import annotations

import re
import sysconfig
from enum import Enum
from pathlib import Path
from typing import Final

from hal.inventory.sysfs import ROOT

INSTALLED_RULES: Final = "etc/udev/rules.d"
_PACKAGED: Final = ("usr/lib/udev/rules.d", "lib/udev/rules.d", "run/udev/rules.d")
_USER_SCHEME: Final = sysconfig.get_preferred_scheme("user")  # used by pip install --user
_GROUP: Final = re.compile(r'(?:GROUP=|GROUP:=)"([^"$]+)"|chgrp ([a-z]+) ')


class RuleState(Enum):
    """Whether the installed rules are those of this version."""

    CURRENT = "current"
    OLD = "another version"
    ABSENT = "not installed"


def shipped_rules() -> tuple[Path, ...]:
    """Return the rules files: in the source tree, or below share/machine-runtime of an installed wheel."""
    base = Path(__file__).resolve().parents[2]
    installed = [base, Path(sysconfig.get_path("data")), Path(sysconfig.get_path("data", _USER_SCHEME))]
    folders = [base / "udev", *(place / "share/machine-runtime/udev" for place in installed)]
    return next((files for folder in folders if (files := tuple(sorted(folder.glob("*.rules"))))), ())


def state(root: Path = ROOT) -> RuleState:
    """Compare the installed rules with those of this version; rules in /etc override those of packages."""
    states = [_state(rules, root) for rules in shipped_rules()]
    if not states or RuleState.ABSENT in states:
        return RuleState.ABSENT
    return RuleState.OLD if RuleState.OLD in states else RuleState.CURRENT


def _state(rules: Path, root: Path) -> RuleState:
    for folder in (INSTALLED_RULES, *_PACKAGED):
        try:
            text = (root / folder / rules.name).read_text()
        except OSError:
            continue
        return RuleState.CURRENT if text == rules.read_text() else RuleState.OLD
    return RuleState.ABSENT


def rule_groups() -> tuple[str, ...]:
    """Return the groups in the rules, in their order."""
    text = "".join(rules.read_text() for rules in shipped_rules())
    return tuple(dict.fromkeys(first or second for first, second in _GROUP.findall(text)))
