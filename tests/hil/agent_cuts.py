"""Cut the power of a guest during updates: `python -m tests.hil.agent_cuts [--cuts 200] [--seed N]`.

Good and bad releases of machine-agent and machine-server are installed in a guest of User-Mode Linux, and the power is
cut at seeded moments of their updates; tests.hil.agent.cuts says what is checked. Prints each update, and a table of
the cuts in each step. Exit status 1 if something was wrong. Takes about 20 s for each cut. It needs the same as the
tests of the rig: see README.md.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import trio

from tests.hil.agent.cuts import cut_power
from tests.hil.image.places import BUILD, why_not_ready
from tests.hil.rig.kinds import why_not_uml
from tests.hil.rig.source import share_source


def main() -> int:
    """Return the exit status."""
    parser = argparse.ArgumentParser("python -m tests.hil.agent_cuts")
    parser.add_argument("--cuts", type=int, default=200, help="how often the power is cut (200)")
    parser.add_argument("--seed", type=int, default=time.time_ns() % 1_000_000, help="seed of the moments (random)")
    options = parser.parse_args()
    if reason := why_not_ready() or why_not_uml():
        print(reason, file=sys.stderr)
        return 1
    print(f"seed {options.seed}", flush=True)
    share = BUILD / f"share-{os.getpid()}"
    share_source(share)
    began = time.monotonic()

    def say(text: str) -> None:
        print(f"{time.monotonic() - began:7.1f} s {text}", flush=True)

    try:
        with tempfile.TemporaryDirectory(prefix="agent-cuts-") as folder:
            result = trio.run(cut_power, share, Path(folder), options.cuts, options.seed, say)
    finally:
        shutil.rmtree(share, ignore_errors=True)
    print(result.table())
    print("\n".join(f"WRONG: {text}" for text in result.wrong) or "nothing was wrong", flush=True)
    return 1 if result.wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
