"""machine-cloud that seals readings at once, in small segments: `python -m tests.e2e.cloud.sealing OPTIONS`."""

from __future__ import annotations

from datetime import timedelta

from cloud.domain.data.segments import sealing
from cloud.server import cli, segment_nodes


def main() -> None:
    sealing.MOST, sealing.SOME = 20, 5
    sealing.WAIT, sealing.LONGEST = timedelta(0), timedelta(seconds=1)
    segment_nodes.PAUSE = 0.01
    cli._seal_after = lambda hours, *, shared: timedelta(0) if hours else None
    cli.main()


if __name__ == "__main__":
    main()
