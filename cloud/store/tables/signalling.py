"""Tables of offers of WebRTC connections, and of the signals between the two ends of each."""

from typing import Final

TABLES: Final = """
CREATE TABLE offers (
    id TEXT PRIMARY KEY,
    part_id TEXT NOT NULL REFERENCES parts (id),
    caller_type TEXT NOT NULL,
    caller TEXT NOT NULL,
    sdp TEXT NOT NULL,
    trickle INTEGER NOT NULL,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    taken INTEGER NOT NULL DEFAULT 0,  -- 1 once the machine has received it
    ended INTEGER NOT NULL DEFAULT 0  -- 1 once the caller has ended its call
);
CREATE INDEX offers_of_part ON offers (part_id);
CREATE INDEX offers_by_end ON offers (expires);
CREATE TABLE signals (
    offer_id TEXT NOT NULL REFERENCES offers (id),
    receiver TEXT NOT NULL,  -- caller or machine
    number INTEGER NOT NULL,
    part_id TEXT NOT NULL,
    content TEXT NOT NULL,  -- JSON
    PRIMARY KEY (offer_id, receiver, number)
);
CREATE INDEX signals_of_part ON signals (part_id);
"""
