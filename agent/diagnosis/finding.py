"""Results of the checks. Pure."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Level(Enum):
    """How a check ended."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    SKIPPED = "skipped"


class CheckFinding(NamedTuple):
    """The result of one check, and what to do about it. Contains no secrets."""

    check: str
    level: Level
    text: str
    remedy: str = ""


def findings_table(findings: list[CheckFinding]) -> str:
    """Return the findings as lines of text, with remedies below."""
    width = max((len(finding.check) for finding in findings), default=0)
    lines = []
    for finding in findings:
        lines.append(f"{finding.level.value:8}{finding.check:{width + 2}}{finding.text}")
        if finding.remedy:
            lines.append(f"{'':{width + 10}}-> {finding.remedy}")
    return "\n".join(lines) + "\n"
