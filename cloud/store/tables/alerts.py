"""Tables of alerts: rules, the state of each rule at each place, their history, and notifications to be made."""

from typing import Final

TABLES: Final = """
CREATE TABLE alert_rules (  -- built-in rules have a row only if they were changed
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    id TEXT NOT NULL,
    document TEXT NOT NULL,  -- JSON; see cloud/domain/alerts/rule.py
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    PRIMARY KEY (organization_id, id)
);
CREATE TABLE alert_targets (  -- who is notified by rules without targets of their own
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    type TEXT NOT NULL,  -- webhook or email
    value TEXT NOT NULL,  -- URL or address
    secret TEXT NOT NULL,  -- signs webhooks
    created INTEGER NOT NULL,
    PRIMARY KEY (organization_id, type, value)
);
CREATE TABLE alerts (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL,
    rule_id TEXT NOT NULL,
    part_id TEXT NOT NULL,  -- empty for training jobs; no reference: a part may be deleted
    source TEXT NOT NULL,  -- component and method, program, or model
    open INTEGER NOT NULL,  -- 1: firing or acknowledged
    state TEXT NOT NULL,  -- JSON; see cloud/domain/alerts/life.py
    due INTEGER,  -- when its next deadline comes
    touched INTEGER NOT NULL,  -- last change
    UNIQUE (organization_id, rule_id, part_id, source)
);
CREATE INDEX alerts_due ON alerts (due) WHERE due IS NOT NULL;
CREATE INDEX alerts_open ON alerts (organization_id) WHERE open = 1;
CREATE INDEX alerts_part ON alerts (part_id, rule_id);
CREATE INDEX alerts_touched ON alerts (touched);
CREATE TABLE alert_events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id TEXT NOT NULL,
    alert_id TEXT NOT NULL,
    rule_id TEXT NOT NULL,
    rule TEXT NOT NULL,  -- names as they were then
    part_id TEXT NOT NULL,
    machine TEXT NOT NULL,
    location TEXT NOT NULL,
    source TEXT NOT NULL,
    happened INTEGER NOT NULL,
    recorded INTEGER NOT NULL,
    kind TEXT NOT NULL,  -- fired, acknowledged ...
    value TEXT NOT NULL,  -- JSON
    detail TEXT NOT NULL  -- who, or why
);
CREATE INDEX alert_events_organization ON alert_events (organization_id, number);
CREATE INDEX alert_events_alert ON alert_events (alert_id, number);
CREATE INDEX alert_events_recorded ON alert_events (recorded);
CREATE TABLE alert_notices (  -- changes of which people are still to be notified, in one message for each rule
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id TEXT NOT NULL,
    rule_id TEXT NOT NULL,
    alert_id TEXT NOT NULL,
    kind TEXT NOT NULL,  -- fired, reminded or resolved
    happened INTEGER NOT NULL,
    value TEXT NOT NULL,  -- JSON
    since INTEGER,
    due INTEGER NOT NULL
);
CREATE INDEX alert_notices_due ON alert_notices (due, number);
CREATE INDEX alert_notices_rule ON alert_notices (organization_id, rule_id, due);
"""

ENDS: Final = """
CREATE TABLE alert_silences (  -- of all alerts of a rule, or of a machine: the other id is empty
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    rule_id TEXT NOT NULL,
    machine_id TEXT NOT NULL,
    until INTEGER NOT NULL,
    author TEXT NOT NULL,  -- name of the key, when it began
    PRIMARY KEY (organization_id, rule_id, machine_id)
);
CREATE INDEX alert_silences_until ON alert_silences (until);
ALTER TABLE alerts ADD COLUMN ending TEXT NOT NULL DEFAULT '';  -- JSON: why it has ended, and its rule's name
"""
