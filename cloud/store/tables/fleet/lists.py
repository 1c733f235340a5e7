"""Tables of lists of machines, and an index of their tags."""

from typing import Final

TABLES: Final = """
-- What lists of machines are filtered and ordered by, a row for each machine: derived from its parts and their reports.
CREATE TABLE fleet_rows (
    machine_id TEXT PRIMARY KEY REFERENCES machines (id),
    organization_id TEXT NOT NULL,
    location_id TEXT NOT NULL,
    name TEXT NOT NULL,  -- in lower case
    state TEXT NOT NULL,  -- awaiting, online, offline or degraded
    calm INTEGER NOT NULL,  -- the number of problems, negative: most problems come first
    server TEXT NOT NULL,  -- versions of machine-server of its parts, with spaces
    agent TEXT NOT NULL,  -- versions of machine-agent
    updates TEXT NOT NULL,  -- states of its agents, each between spaces
    updating INTEGER NOT NULL,  -- 1 while an agent installs or waits for an update
    stale INTEGER NOT NULL  -- 1 until it is derived for the first time
);
CREATE INDEX fleet_rows_name ON fleet_rows (organization_id, name, machine_id);
CREATE INDEX fleet_rows_state ON fleet_rows (organization_id, state, name, machine_id);
CREATE INDEX fleet_rows_server ON fleet_rows (organization_id, server, name, machine_id);
CREATE INDEX fleet_rows_agent ON fleet_rows (organization_id, agent);
CREATE INDEX fleet_rows_calm ON fleet_rows (organization_id, calm, name, machine_id);
CREATE INDEX fleet_rows_location ON fleet_rows (location_id, name, machine_id);
CREATE INDEX fleet_rows_updating ON fleet_rows (organization_id, name, machine_id) WHERE updating = 1;
CREATE INDEX fleet_rows_stale ON fleet_rows (stale, machine_id) WHERE stale = 1;
CREATE TABLE machine_tags (  -- an index of the tags in the metadata of machines and their parts
    machine_id TEXT NOT NULL REFERENCES machines (id),
    tag TEXT NOT NULL,
    PRIMARY KEY (machine_id, tag)
);
CREATE INDEX machine_tags_tag ON machine_tags (tag, machine_id);
INSERT INTO fleet_rows (machine_id, organization_id, location_id, name, state, calm, server, agent, updates, updating,
    stale)
SELECT machines.id, organization_id, location_id, lower(machines.name), 'awaiting', 0, '', '', '', 0, 1
FROM machines JOIN locations ON locations.id = location_id;
"""
