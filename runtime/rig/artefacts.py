"""What a test leaves behind: a folder with logs, readings, graph changes and plots."""

from __future__ import annotations

import re
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nursery_graph import Transition
from runtime.rig.channels import Recorder, to_csv
from runtime.rig.plot import Panel, panels_of, render
from telemetry.entry import Entry, fields_json

JOURNAL: Final = "journal.txt"  # in the folder of all tests: what happened to outputs, in order, across tests
_NAME: Final = re.compile(r"[^A-Za-z0-9._=-]+")
_LONGEST: Final = 120  # characters of a file name


def file_name(text: str) -> str:
    """`text` as the name of a file or folder."""
    return _NAME.sub("-", text).strip("-.")[:_LONGEST] or "unnamed"


class Journal:
    """The order of things across the tests of a run, written as they happen."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def note(self, text: str) -> None:
        """Add a line."""
        self._file.write(f"{text}\n")

    def close(self) -> None:
        """No more lines."""
        self._file.close()


class Artefacts:
    """The folder of one test; made empty, and filled by `write` when the test is over."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.recorder = Recorder(clock)
        self._log = (folder / "log.txt").open("w", encoding="utf-8")
        self._graph = (folder / "graph.txt").open("w", encoding="utf-8")

    def log(self, entry: Entry) -> None:
        """One message of the machine."""
        fields = fields_json(entry.fields) if entry.fields else ""
        text = f"{self.recorder.elapsed():10.3f} {entry.level_name:5} {entry.logger} {entry.message} {fields}".rstrip()
        self._log.write(f"{text}\n{entry.trace}")

    def add_log(self, text: str) -> None:
        """What a machine in another process has logged, as it wrote it."""
        self._log.write(text)

    def transition(self, change: Transition) -> None:
        """One change of the graph."""
        before, after = (state.value if state is not None else "-" for state in (change.before, change.after))
        reason = f": {change.reason}" if change.reason else ""
        self._graph.write(f"{self.recorder.elapsed():10.3f} {change.name}: {before} -> {after}{reason}\n")

    def write(self) -> None:
        """Everything that is known at the end: readings and plots."""
        self._log.close()
        self._graph.close()
        channels = list(self.recorder.channels.values())
        (self.folder / "readings.csv").write_text(to_csv(channels), encoding="utf-8")
        (self.folder / "overview.svg").write_text(render(self.folder.name, panels_of(channels)), encoding="utf-8")
        plots = self.folder / "plots"
        plots.mkdir()
        for channel in channels:
            title = channel.title or channel.name
            picture = render(title, [Panel(channel.unit or title, [channel])])
            (plots / f"{file_name(channel.name)}.svg").write_text(picture, encoding="utf-8")

    def tail(self, lines: int = 30) -> str:
        """The last messages of the log, for the report of a test that failed."""
        self._log.close()
        text = (self.folder / "log.txt").read_text(encoding="utf-8").splitlines()
        return "\n".join(text[-lines:])


class LogSink:
    """From the pipeline of logs to the artefacts."""

    def __init__(self, artefacts: Artefacts) -> None:
        self._artefacts = artefacts

    def write(self, entry: Entry) -> None:
        """As the protocol says."""
        try:
            self._artefacts.log(entry)
        except Exception:  # a sink never raises; the folder may be gone, or the disk full
            traceback.print_exc()

    def close(self) -> None:
        """The artefacts close their own files."""
