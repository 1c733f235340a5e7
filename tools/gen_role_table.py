"""Writes the table of roles in docs/reference/security.md from cloud.permissions and cloud.web.permissions.

python tools/gen_role_table.py          # write it
python tools/gen_role_table.py --check  # exit 1 if it is not current
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloud.permissions import Rule

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "security.md"
CALLERS = ("machine", "operator", "owner", "guest operator", "guest owner")
BEGIN, END = (
    "<!-- Written by tools/gen_role_table.py from here -->",
    "<!-- to here -->",
)


def main() -> int:
    """Write the table, or with `--check` compare it."""
    text = page()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text() != text:
            print(f"{PAGE} is not current; run python tools/gen_role_table.py")
            return 1
        return 0
    PAGE.write_text(text)
    return 0


def page() -> str:
    """The whole page with the table as it is now."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return "\n".join([before + BEGIN, "", *tables(), "", END + after])


def tables() -> Iterator[str]:
    """One table for the routes, and one for each service."""
    from cloud.permissions import CALLS, STANDARD
    from cloud.web.permissions import BY_THE_GUARD, ROUTES
    from rpc.api.methods import methods_of
    from rpc.api.table import SERVICES

    yield from _table("Pages, HTTP routes and WebSockets", {**BY_THE_GUARD, **ROUTES})
    yield ""
    yield from _table("Services of every server", {name[1:]: rule for name, rule in STANDARD.items()})
    for service, rules in CALLS.items():
        published = {name: one.path.rpartition("/")[2] for name, one in methods_of(SERVICES[service]).items()}
        yield ""
        yield from _table(service, {published[name]: rule for name, rule in rules.items() if name in published})


def _table(title: str, rules: Mapping[str, Rule]) -> Iterator[str]:
    yield f"### {title}"
    yield ""
    yield "| | machine | operator | owner | guest operator | guest owner | |"
    yield "|---|---|---|---|---|---|---|"
    for name, rule in rules.items():
        marks = " | ".join(_mark(rule, caller) for caller in CALLERS)
        about = f"of the {rule.of.value}" if rule.of is not None else ""
        text = "; ".join(filter(None, ("without a key" if rule.public else "", about, rule.note)))
        yield f"| `{name}` | {marks} | {text} |"


def _mark(rule: Rule, caller: str) -> str:
    from cloud.access import SHARED, Of, Role

    of = Of.PART if rule.role is Role.MACHINE else rule.of
    if of is None:
        return "\\*"
    if caller == "machine":
        return "itself" if rule.role is Role.MACHINE and of is Of.PART else ""
    guest = caller.startswith("guest")
    if guest and (of not in SHARED or rule.home or rule.role is Role.MACHINE):
        return ""
    role = Role.OWNER if caller.endswith("owner") else Role.OPERATOR
    return "yes" if role is Role.OWNER or rule.role is Role.OPERATOR else ""


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main())
