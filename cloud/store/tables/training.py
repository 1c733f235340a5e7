"""Tables of training jobs and their events, and of labelling."""

from typing import Final

TABLES: Final = """
CREATE TABLE training_jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    dataset_id TEXT NOT NULL,  -- a dataset may be deleted later
    model_name TEXT NOT NULL,  -- of the registry item
    model_version TEXT NOT NULL,
    model_type INTEGER NOT NULL,  -- number of the published enumeration
    labels TEXT NOT NULL,  -- JSON list
    script TEXT NOT NULL,  -- registry item of a custom job; empty for a trainer of this project
    script_version TEXT NOT NULL,
    arguments TEXT NOT NULL,  -- of the script, JSON object
    author_type TEXT NOT NULL,
    author TEXT NOT NULL,
    state TEXT NOT NULL,  -- see training/jobs/lifecycle.py
    reason TEXT NOT NULL DEFAULT '',  -- of a failure
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    started INTEGER,  -- first start
    ended INTEGER,
    worker TEXT NOT NULL DEFAULT '',  -- process that runs it; empty while it does not run
    lease INTEGER NOT NULL DEFAULT 0,  -- the worker has lost the job after this time
    attempts INTEGER NOT NULL DEFAULT 0,  -- starts
    model TEXT NOT NULL DEFAULT ''  -- package that it made
);
CREATE INDEX training_jobs_organization ON training_jobs (organization_id, number);
CREATE INDEX training_jobs_state ON training_jobs (state, number);
CREATE INDEX training_jobs_model ON training_jobs (organization_id, model_name, model_version);
CREATE INDEX training_jobs_started ON training_jobs (organization_id, started);
CREATE INDEX training_jobs_ended ON training_jobs (ended);
CREATE TABLE training_events (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id TEXT NOT NULL REFERENCES training_jobs (id),
    happened INTEGER NOT NULL,
    event TEXT NOT NULL  -- JSON; see training/jobs/events.py
);
CREATE INDEX training_events_job ON training_events (job_id, number);
"""

LABELLING: Final = """
CREATE TABLE dataset_labels (  -- labels that people offer for a dataset; pictures may have others
    dataset_id TEXT NOT NULL REFERENCES datasets (id),
    label TEXT NOT NULL,
    color TEXT NOT NULL,  -- #rrggbb
    position INTEGER NOT NULL,
    PRIMARY KEY (dataset_id, label)
);
CREATE TABLE training_reports (
    job_id TEXT PRIMARY KEY REFERENCES training_jobs (id),
    report TEXT NOT NULL  -- JSON; see training/jobs/report.py
);
CREATE TABLE dataset_suspects (  -- pictures whose labels the newest model contradicts, until they are reviewed
    dataset_id TEXT NOT NULL REFERENCES datasets (id),
    file_id TEXT NOT NULL REFERENCES files (id),
    job_id TEXT NOT NULL,
    predicted TEXT NOT NULL,  -- JSON list of labels
    score REAL NOT NULL,  -- 0 to 1
    PRIMARY KEY (dataset_id, file_id)
);
CREATE INDEX dataset_suspects_file ON dataset_suspects (file_id);
"""

KEYS: Final = """
CREATE TABLE training_keys (
    job_id TEXT PRIMARY KEY REFERENCES training_jobs (id),
    key_id TEXT NOT NULL UNIQUE  -- exists only while the job runs; an owner may delete it earlier
);
"""

NOTIFICATIONS: Final = """
CREATE TABLE training_notifications (  -- who is notified when a job of the organization has ended
    organization_id TEXT NOT NULL REFERENCES organizations (id),
    type TEXT NOT NULL,  -- webhook or email
    value TEXT NOT NULL,  -- URL or address
    secret TEXT NOT NULL,  -- signs webhooks
    created INTEGER NOT NULL,
    PRIMARY KEY (organization_id, type, value)
);
"""
