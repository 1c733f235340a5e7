"""Record measured recovery times from faults for docs/reference/hardware-faults.md."""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import dataclass

from tests.hil.image.places import BUILD


@dataclass(frozen=True, slots=True)
class Recorder:
    """Writes records under the name of one test."""

    test: str

    def __call__(self, what: str, seconds: float, *, seen: str = "") -> None:
        """Store and print the latest figure for `what`; `seen` is the text that the user reads until recovery."""
        path = BUILD / "recovery.json"
        with (BUILD / "recovery.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # tests run in two processes
            try:
                table = json.loads(path.read_text())
            except (OSError, ValueError):
                table = {}
            table[what] = {"seconds": round(seconds, 3), "seen": seen, "test": self.test}
            part = path.with_suffix(".part")
            part.write_text(json.dumps(table, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
            os.replace(part, path)
        print(f"{what}: recovered in {seconds:.2f} s{f'; {seen}' if seen else ''}")
