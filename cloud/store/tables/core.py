"""Tables of organizations, locations, machines, parts, configurations, keys, logs, audit and settings."""

from typing import Final

TABLES: Final = """
CREATE TABLE organizations (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    namespace TEXT UNIQUE,  -- of its modules and packages; NULL until it has one
    metadata TEXT NOT NULL DEFAULT '{}',
    created INTEGER NOT NULL
);
CREATE TABLE locations (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    parent_id TEXT REFERENCES locations (id),
    name TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}',
    created INTEGER NOT NULL
);
CREATE INDEX locations_organization ON locations (organization_id);
CREATE TABLE machines (
    id TEXT PRIMARY KEY,
    location_id TEXT NOT NULL REFERENCES locations (id),
    name TEXT NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}',
    created INTEGER NOT NULL,
    UNIQUE (location_id, name)
);
CREATE TABLE parts (
    id TEXT PRIMARY KEY,
    machine_id TEXT NOT NULL REFERENCES machines (id),
    name TEXT NOT NULL,
    main INTEGER NOT NULL,
    metadata TEXT NOT NULL DEFAULT '{}',
    created INTEGER NOT NULL,
    revision INTEGER NOT NULL,  -- of the configuration in force: configurations.revision
    saved INTEGER NOT NULL,  -- when it was saved
    seen INTEGER,  -- when the machine called last; NULL before its first call
    restart INTEGER NOT NULL DEFAULT 0,  -- 1: restart at the next call
    reported TEXT NOT NULL DEFAULT '{}',  -- what the machine reports about itself
    UNIQUE (machine_id, name)
);
CREATE TABLE part_secrets (
    id TEXT PRIMARY KEY,
    part_id TEXT NOT NULL REFERENCES parts (id),
    secret TEXT NOT NULL,
    created INTEGER NOT NULL
);
CREATE INDEX part_secrets_part ON part_secrets (part_id);
CREATE TABLE configurations (
    part_id TEXT NOT NULL REFERENCES parts (id),
    revision INTEGER NOT NULL,  -- 1, 2, 3 ... for each part
    document TEXT NOT NULL,  -- JSON as it was saved
    saved INTEGER NOT NULL,
    author_type TEXT NOT NULL,
    author TEXT NOT NULL,
    PRIMARY KEY (part_id, revision)
);
CREATE TABLE keys (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    name TEXT NOT NULL,
    digest TEXT NOT NULL,  -- rpc.access.auth.digest_of; the key itself is not stored
    created INTEGER NOT NULL
);
CREATE INDEX keys_organization ON keys (organization_id);
CREATE TABLE grants (
    key_id TEXT NOT NULL REFERENCES keys (id),
    role TEXT NOT NULL,  -- owner or operator
    kind TEXT NOT NULL,  -- organization, location or robot
    subject TEXT NOT NULL,  -- its id
    PRIMARY KEY (key_id, kind, subject)
);
CREATE INDEX grants_subject ON grants (subject);
CREATE TABLE log_entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    part_id TEXT NOT NULL,  -- no reference: entries outlive their part until they expire
    logged INTEGER NOT NULL,
    received INTEGER NOT NULL,
    host TEXT NOT NULL,
    level TEXT NOT NULL,
    logger TEXT NOT NULL,
    message TEXT NOT NULL,
    caller TEXT NOT NULL,
    stack TEXT NOT NULL,
    fields TEXT NOT NULL
);
CREATE INDEX log_entries_part ON log_entries (part_id, logged, number);
CREATE INDEX log_entries_received ON log_entries (received);
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    organization_id TEXT NOT NULL,
    happened INTEGER NOT NULL,
    author_type TEXT NOT NULL,
    author TEXT NOT NULL,
    action TEXT NOT NULL,
    subject TEXT NOT NULL,
    detail TEXT NOT NULL
);
CREATE INDEX audit_organization ON audit (organization_id, number);
CREATE TABLE favorites (
    author_type TEXT NOT NULL,
    author TEXT NOT NULL,
    machine_id TEXT NOT NULL REFERENCES machines (id),
    created INTEGER NOT NULL,
    PRIMARY KEY (author_type, author, machine_id)
);
CREATE TABLE settings (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
"""

LOG_TIMES: Final = """
-- `logged` is the time by which entries are ordered, which is never later than `received`. `stated` is the time that
-- the machine stated, if that is another one: its clock may be wrong.
ALTER TABLE log_entries ADD COLUMN stated INTEGER;
UPDATE log_entries SET stated = logged, logged = received WHERE logged > received;
CREATE INDEX log_entries_stated ON log_entries (part_id, stated) WHERE stated IS NOT NULL;
"""

GOODBYES: Final = """
ALTER TABLE parts ADD COLUMN gone INTEGER NOT NULL DEFAULT 0;  -- 1 after machine-server has stopped orderly
"""

SEARCHES: Final = """
CREATE INDEX log_entries_arrival ON log_entries (part_id, number);
CREATE INDEX locations_parent ON locations (parent_id);
CREATE INDEX favorites_machine ON favorites (machine_id);
CREATE INDEX audit_actions ON audit (organization_id, action);
"""

LOG_COUNTS: Final = """
-- How many entries of the log there are in each step of time, so that a plot does not read the entries.
CREATE TABLE log_counts (
    part_id TEXT NOT NULL,  -- no reference, as of the entries
    start INTEGER NOT NULL,
    level TEXT NOT NULL,  -- debug, info, warn or error
    count INTEGER NOT NULL,
    PRIMARY KEY (part_id, start, level)
);
CREATE INDEX log_counts_start ON log_counts (start);
INSERT INTO log_counts (part_id, start, level, count)
SELECT part_id, logged / 600000000 * 600000000,
    CASE WHEN level IN ('error', 'fatal', 'panic', 'dpanic', 'critical') THEN 'error'
    WHEN level IN ('warn', 'warning') THEN 'warn' WHEN level IN ('debug', 'trace') THEN 'debug' ELSE 'info' END,
    COUNT(*)
FROM log_entries GROUP BY 1, 2, 3;
"""

ARRANGEMENTS: Final = """
-- How the cards of a part's page Control are arranged, as JSON.
CREATE TABLE arrangements (
    part_id TEXT PRIMARY KEY REFERENCES parts (id),
    cards TEXT NOT NULL
);
"""

LIVE: Final = """
-- Snapshots that machines send while they are viewed.
CREATE TABLE live (
    part_id TEXT PRIMARY KEY,
    watched INTEGER NOT NULL,  -- end of the announcement by a viewer
    told INTEGER,  -- when the machine sent the snapshot; NULL before the first one
    snapshot TEXT NOT NULL DEFAULT '{}'  -- JSON
);
"""
