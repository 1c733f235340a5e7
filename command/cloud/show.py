"""Formatting of the cloud's replies for people. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from command.cloud.times import local
from schema import composed
from schema.decoding import did_you_mean
from support.text.terminal import clean, since, table

_SECRETS: Final = "(in secrets, which this key must not read)"
MOST: Final = 40  # maximum lines of a difference between configurations with errors
WORDS: Final = {"ONLINE": "online", "OFFLINE": "offline", "AWAITING_SETUP": "awaiting setup"}
STATES: Final = {"awaiting": "awaiting setup"}
"""Texts of the states of HealthService that differ from their names."""


@dataclass(frozen=True, slots=True)
class Part:
    """A machine part."""

    location: str
    machine: str
    name: str
    id: str
    main: bool
    state: str
    seen: datetime | None
    address: str
    version: str = ""  # of its machine-server, at the last contact
    agent: str = ""  # version of its machine-agent, if that was requested
    updates: tuple[str, ...] = ()  # states of its agent, such as `rolled_back`
    problems: int = 0  # configuration mistakes, and resources that do not work, in its last report
    rejected: str = ""  # why it rejects its newest configuration
    location_id: str = ""


def parts_of(summaries: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Return all parts in a reply of ListMachineSummaries."""
    return [
        Part(
            place["location_name"],
            machine["machine_name"],
            part["part_name"],
            part["part_id"],
            part["is_main_part"],
            WORDS.get(part["online_state"], "unknown"),
            part.get("last_access"),
            part.get("dns_name") or "",
            str(next(iter((part.get("viam_server_version") or {}).values()), "")),
        )
        for place in summaries
        for machine in place["machine_summaries"]
        for part in machine["part_summaries"]
    ]


def chosen(parts: Sequence[Part], name_or_id: str) -> Part:
    """Return the part with this id, machine name or part name, whose letters may be composed or not (NFC, NFD).

    Raises ValueError with similar names if there is none, or with all matches if there are several.
    """
    name = composed(name_or_id)
    matches = [part for part in parts if part.id == name_or_id]
    matches = matches or [
        part for part in parts if part.main and name in map(composed, (part.machine, f"{part.location}/{part.machine}"))
    ]
    matches = matches or [part for part in parts if composed(part.name) == name]
    if len(matches) == 1:
        return matches[0]
    if matches:
        candidates = ", ".join(f"{part.location}/{part.machine} ({part.id})" for part in matches)
        raise ValueError(f"{name_or_id!r} is ambiguous: it may be {candidates}: give the id")
    suggestion = did_you_mean(name_or_id, [part.machine for part in parts])
    raise ValueError(f"there is no machine {name_or_id!r}" + (f": {suggestion}" if suggestion else ""))


def with_agents(
    parts: Sequence[Part], agents: Sequence[Mapping[str, Any]], agent: str, server: str, update: str
) -> list[Part]:
    """Return the parts that match a filter, with what their agents report. An empty filter matches all that report."""
    by_part = {entry["part_id"]: entry for entry in agents}
    return [
        replace(part, version=entry["server_version"], agent=entry["agent_version"], updates=tuple(entry["states"]))
        for part in parts
        if (entry := by_part.get(part.id)) is not None
        and agent in ("", entry["agent_version"])
        and server in ("", entry["server_version"])
        and (not update or update in entry["states"])
    ]


def with_health(parts: Sequence[Part], health: Sequence[Mapping[str, Any]]) -> list[Part]:
    """Return the parts with their health, as the pages of the cloud show it."""
    by_part = {entry["part_id"]: entry for entry in health}
    return [
        part
        if (entry := by_part.get(part.id)) is None
        else replace(
            part,
            state=STATES.get(entry["state"], entry["state"]),
            problems=entry["problems"],
            rejected=entry["rejected"],
            location_id=entry["location_id"],
        )
        for part in parts
    ]


def in_state(parts: Sequence[Part], state: str, location: str) -> list[Part]:
    """Return the parts in a state and a location, given by its name or id; an empty filter matches all."""
    return [part for part in parts if state in ("", part.state) and location in ("", part.location_id, part.location)]


def fleet(parts: Sequence[Part], now: datetime, *, colour: bool = False) -> list[str]:
    """Return the table of `machine cloud machines`."""
    reported = any(part.agent for part in parts)
    rows = [
        [
            part.machine,
            "" if part.main else part.name,
            part.state,
            _problems(part),
            since(part.seen, now),
            part.version,
            *((part.agent, ", ".join(part.updates).replace("_", " ")) if reported else ()),
            part.address,
            part.location,
            part.id,
        ]
        for part in parts
    ]
    more = ["AGENT", "UPDATES"] if reported else []
    head = ["MACHINE", "PART", "STATE", "PROBLEMS", "SEEN", "VERSION", *more, "ADDRESS", "LOCATION", "PART ID"]
    return table(head, rows, colour=colour)


def _problems(part: Part) -> str:
    number = str(part.problems) if part.problems else ""
    return f"{number}, configuration rejected".removeprefix(", ") if part.rejected else number


def report_head(machine: str, received: datetime, now: datetime) -> str:
    """Return the first line of the report of an agent."""
    return f"{clean(machine)}: report of {local(received)}, {since(received, now)} ago"


def request_lines(requests: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a line for each request that the agent has not received."""
    return [
        f"not received yet: the request to {clean(request['kind'])} {clean(request['program']) or 'now'}, "
        f"which expires at {local(request['expires'], seconds=False)}"
        for request in requests
    ]


def outcome_lines(outcomes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return a table of the outcomes of updates; empty if there is none."""
    rows = [
        [
            local(outcome["ended"], seconds=False),
            outcome["program"],
            outcome["version_from"],
            outcome["version"],
            outcome["result"].replace("_", " "),
            outcome["reason"],
        ]
        for outcome in outcomes
    ]
    return ["", *table(["ENDED", "PROGRAM", "FROM", "TO", "RESULT", "REASON"], rows)] if rows else []


def saves(revisions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return revisions with their changes instead of documents; None for the oldest one. Secrets are masked."""
    previous_documents = [*(revision["document"] for revision in revisions[1:]), None]
    return [
        {
            **{key: value for key, value in revision.items() if key != "document"},
            "changes": None if previous is None else list(changes(previous, revision["document"]) or (_SECRETS,)),
        }
        for revision, previous in zip(revisions, previous_documents, strict=True)
    ]


def history(revisions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each result of `saves`, followed by its changes."""
    for save in revisions:
        saved = local(datetime.fromisoformat(save["saved"]))
        yield f"{save['revision']}  {saved}  by {clean(save['author'])}"
        yield from (f"     {clean(line)}" for line in save["changes"] or ())


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> tuple[str, ...]:
    """Return a line for each difference between two configurations. Secrets are masked."""
    if before == after:
        return ()
    from schema import difference, difference_lines, fragments_difference
    from schema.document import decode_document_value

    old, new = (decode_document_value(value).readable for value in (before, after))
    lines = difference(old, new).lines if old is not None and new is not None else ()
    lines += fragments_difference(before, after).lines
    if lines:
        return lines
    lines = difference_lines(before, after)  # in entries with errors, or under keys that machines do not read
    rest = (f"({len(lines) - MOST} further lines)",) if len(lines) > MOST else ()
    return lines[:MOST] + rest


def document_text(text: str) -> str:
    """Indent a configuration."""
    return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
