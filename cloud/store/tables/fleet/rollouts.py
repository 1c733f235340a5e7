"""Tables of rollouts in stages, of revisions of fragments and of versions of programs."""

from typing import Final

TABLES: Final = """
ALTER TABLE fragments ADD COLUMN offered INTEGER;  -- revision of machines that name none; NULL: the newest
ALTER TABLE rollouts ADD COLUMN staged INTEGER NOT NULL DEFAULT 0;  -- 1: staged_rollouts with the same id decides
CREATE TABLE staged_rollouts (
    id TEXT PRIMARY KEY,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    kind TEXT NOT NULL,  -- fragment or program
    subject TEXT NOT NULL,  -- id of the fragment, or name of the program
    channel TEXT NOT NULL,  -- tag of the fragment that moves; empty for machines that name none, and for programs
    called TEXT NOT NULL,  -- name of the fragment or program, when it was started
    revision_from TEXT NOT NULL,  -- revision of the fragment that the others have; empty for programs
    revision_to TEXT NOT NULL,  -- revision or version that is rolled out
    plan TEXT NOT NULL,  -- JSON: cloud.domain.rollouts.plan.Plan
    state TEXT NOT NULL,  -- active, paused, stopped, finished or reverted
    stage INTEGER NOT NULL,  -- the last stage that is included: 0, 1 ...
    reason TEXT NOT NULL,  -- why it was stopped
    failures INTEGER NOT NULL,  -- machines that failed since it was started or resumed
    total INTEGER NOT NULL,  -- machines of all stages
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,  -- of state or stage
    ended INTEGER  -- when it was finished or reverted; NULL while it is open
);
CREATE INDEX staged_rollouts_organization ON staged_rollouts (organization_id, created, id);
CREATE UNIQUE INDEX staged_rollouts_open ON staged_rollouts (subject, channel, organization_id) WHERE ended IS NULL;
CREATE TABLE staged_machines (
    rollout_id TEXT NOT NULL REFERENCES staged_rollouts (id),
    part_id TEXT NOT NULL,  -- no reference: an outcome outlives its machine
    machine_id TEXT NOT NULL,
    name TEXT NOT NULL,  -- of the machine, when the rollout was started
    stage INTEGER NOT NULL,
    state TEXT NOT NULL,  -- cloud.domain.rollouts.life.MachineState
    offered INTEGER,  -- since when it could take the change
    up INTEGER NOT NULL,  -- 1 if it was online when it could take the change
    problems INTEGER NOT NULL,  -- that it had before
    taken INTEGER,  -- when it had the change
    worse INTEGER,  -- since when it is offline or has more problems
    reason TEXT NOT NULL,
    changed INTEGER NOT NULL,  -- of state
    due INTEGER,  -- when it is to be looked at; NULL if nothing is expected
    watched INTEGER NOT NULL,  -- 1 while its reports matter
    PRIMARY KEY (rollout_id, part_id)
);
CREATE INDEX staged_machines_name ON staged_machines (rollout_id, name, part_id);
CREATE INDEX staged_machines_state ON staged_machines (rollout_id, state, name, part_id);
CREATE INDEX staged_machines_stage ON staged_machines (rollout_id, stage, part_id);
CREATE INDEX staged_machines_taken ON staged_machines (rollout_id, taken) WHERE state = 'updated';
CREATE INDEX staged_machines_watched ON staged_machines (machine_id) WHERE watched = 1;
CREATE INDEX staged_machines_due ON staged_machines (due, rollout_id, part_id) WHERE due IS NOT NULL;
CREATE TABLE staged_counts (  -- machines of each stage in each state, so that nothing counts them
    rollout_id TEXT NOT NULL REFERENCES staged_rollouts (id),
    stage INTEGER NOT NULL,
    state TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (rollout_id, stage, state)
);
CREATE TABLE staged_events (  -- what happened to a rollout, and who did it
    rollout_id TEXT NOT NULL REFERENCES staged_rollouts (id),
    number INTEGER NOT NULL,
    happened INTEGER NOT NULL,
    author_type TEXT NOT NULL,  -- empty if it happened by itself
    author TEXT NOT NULL,
    kind TEXT NOT NULL,  -- started, next, paused, resumed, stopped, finished or reverted
    detail TEXT NOT NULL,
    PRIMARY KEY (rollout_id, number)
);
"""
