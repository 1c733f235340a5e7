"""Tables of signed releases, their rollouts, and the reports of agents."""

from typing import Final

TABLES: Final = """
CREATE TABLE release_keys (
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    role TEXT NOT NULL,  -- snapshot or timestamp
    keyid TEXT NOT NULL,  -- as in root.json
    private_key TEXT NOT NULL,  -- Ed25519 seed, hexadecimal
    created INTEGER NOT NULL,
    PRIMARY KEY (organization_id, role, keyid)
);
CREATE TABLE release_metadata (
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    role TEXT NOT NULL,  -- root, targets, snapshot or timestamp
    version INTEGER NOT NULL,
    content BLOB NOT NULL,  -- as it was signed
    expires INTEGER NOT NULL,
    stored INTEGER NOT NULL,
    PRIMARY KEY (organization_id, role, version)
);
CREATE TABLE release_signing (
    organization_id TEXT PRIMARY KEY REFERENCES organizations (id),
    due INTEGER NOT NULL  -- when snapshot or timestamp are to be signed again
);
CREATE INDEX release_signing_due ON release_signing (due);
CREATE TABLE release_files (
    id TEXT PRIMARY KEY,  -- links name it
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    digest TEXT NOT NULL,  -- SHA-256, hexadecimal
    size INTEGER NOT NULL,
    blob TEXT NOT NULL,
    uploaded INTEGER NOT NULL,
    unused INTEGER,  -- since when no target refers to it; NULL while one does
    UNIQUE (organization_id, digest)
);
CREATE INDEX release_files_blob ON release_files (blob);
CREATE INDEX release_files_unused ON release_files (unused);
CREATE TABLE release_targets (
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    path TEXT NOT NULL,  -- name of the target in the current targets.json
    program TEXT NOT NULL,
    version TEXT NOT NULL,
    platform TEXT NOT NULL,
    channels TEXT NOT NULL,  -- sorted, with commas
    digest TEXT NOT NULL,  -- of its file: release_files.digest
    PRIMARY KEY (organization_id, path)
);
CREATE TABLE rollouts (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    program TEXT NOT NULL,
    version TEXT NOT NULL,
    percent REAL NOT NULL,
    tags TEXT NOT NULL,  -- JSON: a machine needs one of them; empty for all
    locations TEXT NOT NULL,  -- JSON: ids; a machine is in one of them or below; empty for all
    stop_after INTEGER,  -- most machines that may roll back; NULL for any number
    state TEXT NOT NULL,  -- active, paused, stopped or finished
    reason TEXT NOT NULL,  -- why it was stopped
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,  -- of percent or state
    counted INTEGER NOT NULL,  -- roll-backs are counted from then on
    UNIQUE (organization_id, program, version)
);
CREATE TABLE agent_reports (
    part_id TEXT PRIMARY KEY REFERENCES parts (id),
    received INTEGER NOT NULL,
    report TEXT NOT NULL  -- JSON
);
CREATE TABLE agent_programs (
    part_id TEXT NOT NULL REFERENCES parts (id),
    program TEXT NOT NULL,
    version TEXT NOT NULL,  -- that is to run
    target TEXT NOT NULL,  -- version of the update in progress; empty if there is none
    step TEXT NOT NULL,
    since INTEGER,  -- start of the step, by the clock of the machine
    PRIMARY KEY (part_id, program)
);
CREATE TABLE agent_outcomes (
    part_id TEXT NOT NULL REFERENCES parts (id),
    program TEXT NOT NULL,
    digest TEXT NOT NULL,  -- of the release that was to be installed
    ended INTEGER NOT NULL,  -- by the clock of the machine
    received INTEGER NOT NULL,
    version TEXT NOT NULL,
    version_from TEXT NOT NULL,
    result TEXT NOT NULL,  -- updated, rolled_back, rejected or superseded
    reason TEXT NOT NULL,
    PRIMARY KEY (part_id, program, digest, ended)
);
CREATE INDEX agent_outcomes_version ON agent_outcomes (program, version, part_id);
"""

SEARCHES: Final = """
CREATE INDEX release_files_uploaded ON release_files (uploaded);
"""

OWN_KEYS: Final = """
CREATE TABLE own_release_keys (  -- of repositories that the cloud signs itself
    organization_id TEXT PRIMARY KEY REFERENCES organizations (id),
    root_key TEXT NOT NULL,  -- Ed25519 seed, hexadecimal
    targets_key TEXT NOT NULL,  -- the same
    created INTEGER NOT NULL
);
"""

IMPORTS: Final = """
CREATE TABLE release_imports (  -- of the cloud's own programs
    organization_id TEXT PRIMARY KEY REFERENCES organizations (id),
    state TEXT NOT NULL,  -- waiting, working, done or failed
    step TEXT NOT NULL,  -- what is being done, or was done, for people
    done INTEGER NOT NULL,  -- bytes of the step
    total INTEGER NOT NULL,  -- 0 if not known
    notes TEXT NOT NULL,  -- JSON: platforms without a release, with reason and remedy
    number INTEGER NOT NULL,  -- grows with each change
    lease INTEGER NOT NULL,  -- until then, a process works on it
    changed INTEGER NOT NULL
);
CREATE INDEX release_imports_lease ON release_imports (lease) WHERE state IN ('waiting', 'working');
"""
