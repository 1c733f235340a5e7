"""Records for the tests."""

from __future__ import annotations

import hashlib

from agent.update.record import Offer, Progress, Record, Release, Slots, Step

NOW = 1_000_000.0


def release(version: str, build: str = "") -> Release:
    """Return a release; two builds of a version have different hashes."""
    sha256 = hashlib.sha256(f"{version} {build}".encode()).hexdigest()
    return Release(version, sha256, 1000, f"https://releases.test/{version}", "linux/aarch64")


FACTORY, OLD, CURRENT, TARGET, NEWER = map(release, ("1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0"))
IDLE = Record("machine-server", Slots(CURRENT, OLD, FACTORY))


def at(step: Step, **fields: object) -> Record:
    """Return a record in a step of the update to TARGET."""
    progress = Progress(step, TARGET, NOW - 100, NOW - 10, NOW + 100, **fields)  # type: ignore[arg-type]
    return Record("machine-server", Slots(CURRENT, OLD, FACTORY), progress)


def offer(target: Release, explicit: bool = False) -> Offer:
    return Offer(target, explicit)
