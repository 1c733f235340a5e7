"""Records for the tests."""

from __future__ import annotations

import hashlib

from agent.update.record import Release, ReleaseOffer, ReleaseSlots, UpdateProgress, UpdateRecord, UpdateStep

NOW = 1_000_000.0


def release(version: str, build: str = "") -> Release:
    """Return a release; two builds of a version have different hashes."""
    sha256 = hashlib.sha256(f"{version} {build}".encode()).hexdigest()
    return Release(version, sha256, 1000, f"https://releases.test/{version}", "linux/aarch64")


FACTORY, OLD, CURRENT, TARGET, NEWER = map(release, ("1.0.0", "1.1.0", "1.2.0", "1.3.0", "1.4.0"))
IDLE = UpdateRecord("machine-server", ReleaseSlots(CURRENT, OLD, FACTORY))


def at(step: UpdateStep, **fields: object) -> UpdateRecord:
    """Return a record in a step of the update to TARGET."""
    progress = UpdateProgress(step, TARGET, NOW - 100, NOW - 10, NOW + 100, **fields)  # type: ignore[arg-type]
    return UpdateRecord("machine-server", ReleaseSlots(CURRENT, OLD, FACTORY), progress)


def offer(target: Release, explicit: bool = False) -> ReleaseOffer:
    return ReleaseOffer(target, explicit)
