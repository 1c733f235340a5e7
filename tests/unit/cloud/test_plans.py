"""No statement of the cloud reads or sorts a whole table, except those in REASONS. This file runs last in its folder.

The statements are those that the tests before it executed, and a test requires that they executed every statement of
the cloud. A statement whose cost grows with what is stored fails here, in whichever test it was executed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from tests.postgresql import Cluster
from tests.unit.cloud import plans
from tests.unit.cloud.statements import Capture, Executed, places

FLEET: Final = "as many rows as there are people, keys, locations, machines or parts, whatever they send"
DATASET: Final = "the pictures of one dataset"
SOURCES: Final = "sources, not what they have sent"
SEGMENTS: Final = "segments in a range of time, of which each has thousands of readings"
ORDERED: Final = "reads the first rows in the order of an index, and stops"
REASONS: Final[dict[str, tuple[str, str]]] = {
    "domain.alerts.history.events": ("alert_events", "PostgreSQL reads those kept, newest first"),
    "domain.alerts.history.expire": ("alert_events, organizations", "events that are kept, once an hour"),
    "domain.alerts.states.next_due": ("alerts", ORDERED),
    "domain.certificates.authorities.expire": ("authorities", "a few for each organization, once an hour"),
    "domain.certificates.authorities.scopes": ("organizations", FLEET),
    "domain.configurations.fragment_uses._places": ("locations, machines", FLEET),
    "domain.configurations.fragments.public_fragments": ("fragments", "a list of all that are public"),
    "domain.data.files.all_tags": (
        "files, data_sources, sorts",
        "tags of all files of a filter, when asked for",
    ),
    "domain.data.files.ids": ("data_sources", "a filter without an organization, location or machine, of an owner"),
    "domain.data.files.sample": ("files", ORDERED),
    "domain.data.labels.names": (
        "files, data_sources, sorts",
        "labels of all files of a filter, when asked for",
    ),
    "domain.data.labels.of_files": ("sorts", "of at most 500 files"),
    "domain.data.pages._first_sources": ("data_sources", "sources, not what they have sent"),
    "domain.data.readings.delete": ("readings", "PostgreSQL reads them in the order of an index, up to AT_ONCE"),
    "domain.data.readings.total": ("data_source_tags", SOURCES),
    "domain.data.retention.expire": ("data_retention", "a row for each organization that has a period"),
    "domain.data.segments.catalog._created": ("ducklake_snapshot", "a single row"),
    "domain.data.segments.catalog._snapshot": ("ducklake_snapshot", "a single row"),
    "domain.data.segments.catalog.add": ("ducklake_snapshot", "a single row"),
    "domain.data.segments.catalog.forget": ("ducklake_table", FLEET),
    "domain.data.segments.listed.figures": ("ducklake_table_stats, segments", "a segment for thousands of readings"),
    "domain.data.segments.listed.sample": ("segments", ORDERED),
    "domain.data.segments.plotting._candidates": ("data_sources, data_source_tags", SOURCES),
    "domain.data.segments.reading._select": ("data_sources, data_source_tags, sorts", SEGMENTS),
    "domain.data.segments.reading._totals": ("data_sources, data_source_tags", SEGMENTS),
    "domain.data.segments.reading.overlapping": (
        "data_sources, data_source_tags, segments",
        "PostgreSQL reads segments in any order until there are enough; each has thousands of readings",
    ),
    "domain.data.series._chosen": ("data_sources, sorts", "sources, not what they have sent"),
    "domain.data.series._readings": ("sorts", "at most MOST readings"),
    "domain.fleet.fleet._locations": ("locations, organizations", FLEET),
    "domain.fleet.fleet._machines": ("locations, machines, parts, trigger_presence, sorts", FLEET),
    "domain.machines.logs.within": ("sorts", "at most about SLICE lines, of a short time"),
    "domain.machines.listed.refresh_stale": ("fleet_rows", "rows that an update of the database left, at the start"),
    "domain.fleet.watching.expire": ("live", FLEET),
    "domain.labelling.palette.label_counts": ("sorts", DATASET),
    "domain.labelling.pictures.machines": ("sorts", DATASET),
    "domain.labelling.pictures.neighbours": ("sorts", DATASET),
    "domain.labelling.pictures.page": ("sorts", DATASET),
    "domain.machines.logs.newest": ("log_entries", ORDERED),
    "domain.machines.signalling.expire": ("signals", "of connection attempts, which last for minutes"),
    "domain.organizations.first.first_organization": ("organizations", FLEET),
    "domain.organizations.first.first_start": ("organizations", FLEET),
    "domain.organizations.sharing._notify_parts": ("location_secrets, locations, machines, parts, sorts", FLEET),
    "domain.organizations.sharing.digests_at": ("location_secrets, locations", FLEET),
    "domain.organizations.sharing.forget_lost": ("grants", FLEET),
    "domain.people.invites.expire": ("invites", FLEET),
    "domain.people.people.forget": ("people", FLEET),
    "domain.permissions.audit._counted": ("audit", ORDERED),
    "domain.permissions.audit.entries": ("audit", ORDERED),
    "domain.permissions.credentials.every.<listcomp>": (
        "keys, location_secrets, locations, machines, part_secrets, parts",
        "all credentials, at the start",
    ),
    "domain.permissions.credentials.expire.<genexpr>": ("signed_out, tickets", "sessions of pages, once an hour"),
    "domain.permissions.credentials.require_in_force": ("location_secrets, locations", FLEET),
    "domain.permissions.credentials.some": ("location_secrets, locations", FLEET),
    "domain.registry.deprecation.advice": (
        "organizations, registry_files, registry_items",
        "published packages, not what machines send",
    ),
    "domain.registry.files.sample.<listcomp>": ("registry_files", ORDERED),
    "domain.registry.items.find": ("registry_items", "published packages, not what machines send"),
    "domain.registry.items.public": ("registry_items", "a list of all that are public"),
    "domain.releases.files.sample.<listcomp>": ("release_files", ORDERED),
    "domain.queries.gathering._state": ("ducklake_snapshot", "a single row"),
    "domain.releases.repository.due": ("release_signing", "a row for each organization with releases"),
    "domain.releases.requests.expire": ("agent_requests", FLEET),
    "domain.training.jobs.expire": ("training_events", "PostgreSQL reads events in the order of jobs, up to AT_ONCE"),
    "domain.training.pictures.examples": ("sorts", DATASET),
    "domain.training.pictures.pictures": ("sorts", DATASET),
    "domain.triggering.deliveries.deliveries": ("deliveries, sorts", "PostgreSQL reads those kept, newest first"),
    "domain.triggering.deliveries.last_error": ("sorts", "deliveries of one part to one target, kept for days"),
    "domain.triggering.hourly.check": ("sorts", "entries of one hour"),
    "domain.triggering.presence.part_states": ("parts, trigger_presence", FLEET),
    "domain.triggering.queue.forget": (
        "organizations, parts, trigger_clocks, trigger_events, trigger_presence, trigger_queues, trigger_stops",
        "rows of parts, and events that wait to be evaluated, once an hour",
    ),
    "domain.triggering.queue.take": ("trigger_events", ORDERED),
    "domain.triggering.queue.waiting": ("trigger_events", "events that wait to be evaluated"),
    "domain.upkeep.set_clock.correct": (
        "deliveries, fleet_jobs, live, training_jobs",
        "after a wrong clock, at the start and once an hour",
    ),
    "store.moving._copied": ("every", "copies a database"),
    "store.moving._copied_table": ("every", "copies a database"),
    "store.trash.release": ("trash", "files that wait to be deleted, on demand"),
}
"""For each function: the tables that its statements may read whole, and `sorts`; and why that is right."""


def test_every_statement_is_executed(captured_statements: Capture, whole_folder: bool) -> None:
    if not whole_folder:
        pytest.skip("only where all tests of tests/unit/cloud run")
    lines = captured_statements.lines
    missing = [
        f"{path}:{first}"
        for path, first, last in places()
        if not any((path, line) in lines for line in range(first, last + 1))
    ]
    assert missing == []


def test_plans_in_sqlite(captured_statements: Capture) -> None:
    connection = plans.sqlite()
    try:
        judge(
            captured_statements,
            lambda executed: plans.costs_in_sqlite(connection, executed) if executed.in_sqlite else set(),
        )
    finally:
        connection.close()


def test_plans_in_postgresql(captured_statements: Capture, postgresql: Cluster) -> None:
    with plans.postgresql(postgresql.fresh()) as connection:
        indexes = plans.tables_of_indexes(connection)
        judge(captured_statements, lambda executed: plans.costs_in_postgresql(connection, indexes, executed))


def judge(capture: Capture, costs_of: Callable[[Executed], set[str]]) -> None:
    """Fail if a statement has a cost without a reason."""
    if not capture.statements:
        pytest.skip("judges the statements of other tests: run some of them, too")
    problems = []
    for executed in capture.statements.values():
        costs = {cost.removeprefix("scans "): cost for cost in costs_of(executed)}
        for function in sorted(executed.functions):
            allowed = REASONS.get(function, ("", ""))[0].split(", ")
            if "every" not in allowed and (unexpected := costs.keys() - allowed):
                words = ", ".join(sorted(costs[name] for name in unexpected))
                problems.append(f"{function} {words}, and has no reason here: {' '.join(executed.text.split())}")
    assert not problems, "\n".join(sorted(problems))
