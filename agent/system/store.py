"""The record and the files of the system configuration: in memory, and on the disk before anything depends on them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog
import trio

from agent.layout import Layout
from agent.system.apply_files import ManagedDisk, apply_files
from agent.system.managed_files import FilePlan, WantedFile, parse_manifest
from agent.system.state import MANIFEST, RECORD, SystemRecord, decode
from schema import MachineError
from support import RunBlocking
from support.files import replace_file

_log = structlog.get_logger("agent.system")

JOURNAL: Final = "journal"
UPGRADES: Final = "upgrades"


class SystemStore:
    """Call `load` first. `run` calls functions in a worker thread; `root` is / except in tests."""

    def __init__(self, layout: Layout, run: RunBlocking, root: Path = Path("/")) -> None:
        self.record = SystemRecord()
        self.files: tuple[str, ...] = ()
        """Paths of the files that the agent has written outside its own folder."""
        self._disk, self._run = ManagedDisk(root), run
        self._manifest = str((layout.state / MANIFEST).absolute().relative_to(root))
        self._record = layout.state / RECORD
        self._desired: dict[str, Mapping[str, str]] = {}  # texts by path, by part
        self._lock = trio.Lock()

    async def load(self) -> None:
        """Read the record. A damaged one is replaced: what was changed then stays as it is."""
        record = await self._run(partial(_load, self._record))
        if record is None:
            _log.warning(
                "the record of the system configuration cannot be read; a new one is begun", file=str(self._record)
            )
        else:
            self.record = record
        self._desired = {UPGRADES: self.record.upgrade_files}
        self.files = await self._run(self._own)

    async def update(self, **changes: Any) -> None:
        """Change fields of the record, and store it. OSError if that fails; then nothing has changed."""
        async with self._lock:
            record = msgspec.structs.replace(self.record, **changes)
            if record != self.record:
                await self._run(partial(replace_file, self._record, msgspec.json.encode(record)))
                self.record = record

    async def set_files(self, part: str, texts: Mapping[str, str]) -> FilePlan:
        """Make `texts` (by path) the files of a part, and return what was done to them. The other parts keep theirs.

        The problems of the plan are only those of this part. MachineError if the manifest is damaged, and OSError.
        """
        async with self._lock:
            desired = {**self._desired, part: texts}
            written = [WantedFile(path, text) for files in desired.values() for path, text in files.items()]
            plan: FilePlan = await self._run(partial(apply_files, self._disk, self._manifest, written))
            self._desired = desired
            self.files = await self._run(self._own)
        others = {path for name, files in desired.items() if name != part for path in files}
        problems = {path: error for path, error in plan.problems.items() if path not in others}
        return dataclasses.replace(plan, problems=problems)

    def _own(self) -> tuple[str, ...]:
        try:
            content = self._disk.read(self._manifest)
            return tuple(f"/{path}" for path in sorted(parse_manifest(content and content[0]).files))
        except (OSError, MachineError):
            return ()


def _load(path: Path) -> SystemRecord | None:
    try:
        return decode(path.read_bytes())
    except FileNotFoundError:
        return SystemRecord()
    except OSError:
        return None
