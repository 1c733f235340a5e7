"""Tables of triggers: events, state, and deliveries."""

from typing import Final

TABLES: Final = """
CREATE TABLE trigger_events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of evaluation within a part
    part_id TEXT NOT NULL,
    happened INTEGER NOT NULL,
    kind TEXT NOT NULL,  -- ingestion, presence or logs
    event TEXT NOT NULL  -- JSON; see cloud/domain/triggering/queue.py
);
CREATE INDEX trigger_events_part ON trigger_events (part_id, number);
CREATE TABLE trigger_queues (
    part_id TEXT PRIMARY KEY  -- locked by the transaction that evaluates events of the part
);
CREATE TABLE trigger_clocks (
    part_id TEXT NOT NULL,
    trigger_name TEXT NOT NULL,
    target TEXT NOT NULL,  -- digest of the notification entry: triggers.cooldown.clock
    notified INTEGER NOT NULL,  -- when the event happened that was notified of last
    PRIMARY KEY (part_id, trigger_name, target)
);
CREATE TABLE trigger_stops (
    part_id TEXT NOT NULL,
    trigger_name TEXT NOT NULL,
    target TEXT NOT NULL,
    entry TEXT NOT NULL,  -- digest of the trigger that was stopped: a changed one is not
    stopped INTEGER NOT NULL,
    reason TEXT NOT NULL,
    PRIMARY KEY (part_id, trigger_name, target)
);
CREATE TABLE trigger_presence (
    part_id TEXT PRIMARY KEY,
    online INTEGER NOT NULL,
    changed INTEGER NOT NULL
);
CREATE TABLE deliveries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,  -- constant: the receiver recognizes a repetition by it
    part_id TEXT NOT NULL,
    trigger_name TEXT NOT NULL,
    event TEXT NOT NULL,  -- type of the event
    entry TEXT NOT NULL,  -- digest of the trigger that fired
    type TEXT NOT NULL,  -- webhook, email or push
    value TEXT NOT NULL,  -- as the notification entry has it
    target TEXT NOT NULL,  -- URL or address
    about TEXT NOT NULL,  -- JSON: component, method ...
    test INTEGER NOT NULL,  -- sent on request, to test the target
    created INTEGER NOT NULL,
    method TEXT NOT NULL,
    headers TEXT NOT NULL,  -- JSON, without signature and password, which every attempt adds
    body BLOB NOT NULL,
    state TEXT NOT NULL,  -- waiting, delivered, failed
    due INTEGER NOT NULL,  -- time of the next attempt; while it is sent: end of the lease
    sending INTEGER NOT NULL DEFAULT 0,  -- 1 while a process sends it
    tries INTEGER NOT NULL DEFAULT 0,  -- since it was created or replayed
    attempts INTEGER NOT NULL DEFAULT 0  -- altogether
);
CREATE INDEX deliveries_due ON deliveries (state, due);
CREATE INDEX deliveries_order ON deliveries (part_id, target, state, number);
CREATE INDEX deliveries_part ON deliveries (part_id, number);
CREATE INDEX deliveries_created ON deliveries (created);
CREATE TABLE delivery_attempts (
    delivery TEXT NOT NULL REFERENCES deliveries (id),
    attempt INTEGER NOT NULL,  -- 1, 2, 3 ...
    started INTEGER NOT NULL,
    duration INTEGER NOT NULL,  -- microseconds
    status INTEGER NOT NULL,  -- of HTTP; 0 without an answer
    error TEXT NOT NULL,  -- empty for one that succeeded
    PRIMARY KEY (delivery, attempt)
);
"""
