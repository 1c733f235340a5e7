"""Write the table of roles in docs/reference/security.md from the rules of the cloud's calls and routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cloud.domain.permissions.rules import AccessRule

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "security.md"
CALLERS = ("machine", "operator", "owner", "guest operator", "guest owner")
BEGIN, END = (
    "<!-- Written by tools/gen_role_table.py from here -->",
    "<!-- to here -->",
)


def page() -> str:
    """Return the page with the table replaced."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    return "\n".join([before + BEGIN, "", *tables(), "", END + after])


def tables() -> Iterator[str]:
    """Yield the lines of a table for the routes and of one for each service."""
    from cloud.domain.permissions.calling import CALL_A_MACHINE
    from cloud.domain.permissions.rules import STANDARD
    from cloud.services.target import CALLS
    from cloud.web.permissions import BY_THE_GUARD, ROUTES
    from rpc.api.methods import methods_of
    from rpc.api.table import SERVICES

    yield from _table("Pages, HTTP routes and WebSockets", dict(sorted({**BY_THE_GUARD, **ROUTES}.items(), key=_path)))
    yield ""
    yield from _table("Services of every server", {name[1:]: rule for name, rule in STANDARD.items()})
    yield ""
    yield from _table("Calls to machines through the cloud", {"every call": CALL_A_MACHINE})
    for service, rules in CALLS.items():
        published = {name: method.path.rpartition("/")[2] for name, method in methods_of(SERVICES[service]).items()}
        yield ""
        yield from _table(service, {published[name]: rule for name, rule in rules.items() if name in published})


def _path(entry: tuple[str, AccessRule]) -> str:
    return entry[0].partition(" ")[2]


def _table(title: str, rules: Mapping[str, AccessRule]) -> Iterator[str]:
    yield f"### {title}"
    yield ""
    yield "| | machine | operator | owner | guest operator | guest owner | |"
    yield "|---|---|---|---|---|---|---|"
    for name, rule in rules.items():
        marks = " | ".join(_mark(rule, caller) for caller in CALLERS)
        scope = f"of the {rule.of.value}" if rule.of is not None else ""
        text = "; ".join(filter(None, ("without a key" if rule.public else "", scope, rule.note)))
        yield f"| `{name}` | {marks} | {text} |"


def _mark(rule: AccessRule, caller: str) -> str:
    from cloud.domain.permissions.access import SHARED, ObjectKind, Role

    level = ObjectKind.PART if rule.role is Role.MACHINE else rule.of
    if level is None:
        return "\\*"
    if caller == "machine":
        return "itself" if rule.role is Role.MACHINE and level is ObjectKind.PART else ""
    guest = caller.startswith("guest")
    if guest and (level not in SHARED or rule.home or rule.role is Role.MACHINE):
        return ""
    role = Role.OWNER if caller.endswith("owner") else Role.OPERATOR
    return "yes" if role is Role.OWNER or rule.role is Role.OPERATOR else ""
