"""Tables of work on many machines, and of saved views."""

from typing import Final

TABLES: Final = """
CREATE TABLE fleet_jobs (  -- work on many machines
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    author_type TEXT NOT NULL,  -- whose permission counts
    author TEXT NOT NULL,
    work TEXT NOT NULL,  -- JSON: cloud.domain.fleet.work.Work
    undo_of TEXT NOT NULL,  -- id of the job that it undoes; empty for others
    state TEXT NOT NULL,  -- running, done or stopped
    total INTEGER NOT NULL,  -- machines
    changed INTEGER NOT NULL,  -- machines with this outcome, and so on
    unchanged INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    created INTEGER NOT NULL,
    ended INTEGER,
    lease INTEGER NOT NULL  -- until then, a process works on it
);
CREATE INDEX fleet_jobs_organization ON fleet_jobs (organization_id, created, id);
CREATE INDEX fleet_jobs_lease ON fleet_jobs (lease) WHERE state = 'running';
CREATE TABLE fleet_job_machines (
    job_id TEXT NOT NULL REFERENCES fleet_jobs (id),
    position INTEGER NOT NULL,  -- 1, 2, 3 ...
    machine_id TEXT NOT NULL,  -- no reference: an outcome outlives its machine
    name TEXT NOT NULL,  -- when the job was started
    state TEXT NOT NULL,  -- waiting, changed, unchanged, failed or skipped
    reason TEXT NOT NULL,
    plan TEXT NOT NULL,  -- JSON: of a job that undoes, what the other job did
    effect TEXT NOT NULL,  -- JSON: what was done, for undoing it
    ended INTEGER,
    PRIMARY KEY (job_id, position)
);
CREATE INDEX fleet_job_machines_state ON fleet_job_machines (job_id, state, position);
CREATE TABLE fleet_views (  -- saved filters, orders and columns of the list of machines
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    owner TEXT NOT NULL,  -- the key whose view it is; empty for the whole organization
    name TEXT NOT NULL,
    query TEXT NOT NULL,  -- as in the address of the page
    saved INTEGER NOT NULL,
    UNIQUE (organization_id, owner, name)
);
"""
