"""The artefacts of a test: a folder with logs, readings, graph changes and plots."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Final

from nursery_graph import Transition
from support import Panel, Recorder, panels_of, render_plot, to_csv
from support.foreign import erase
from telemetry.logs import Entry, fields_json

JOURNAL: Final = "journal.txt"  # in the folder of all tests: every change of an output, in order, across tests
_NAME: Final = re.compile(r"[^A-Za-z0-9._=-]+")
_LONGEST: Final = 120  # characters of a file name


def file_name(text: str) -> str:
    """Convert `text` to a valid name of a file or folder."""
    return _NAME.sub("-", text).strip("-.")[:_LONGEST] or "unnamed"


class Journal:
    """A log of events in order across the tests of a run. Each line is written immediately."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8", buffering=1)

    def note(self, text: str) -> None:
        """Append a line."""
        self._file.write(f"{text}\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Artefacts:
    """The folder of one test. Created empty; logs are written at once, everything else by `write` at the end."""

    def __init__(self, folder: Path, clock: Callable[[], float]) -> None:
        self.folder = folder
        erase(folder)
        folder.mkdir(parents=True)
        self.recorder = Recorder(clock)
        self._log = (folder / "log.txt").open("w", encoding="utf-8")
        self._graph = (folder / "graph.txt").open("w", encoding="utf-8")

    def log(self, entry: Entry) -> None:
        """Write a log message of the machine."""
        fields = fields_json(entry.fields) if entry.fields else ""
        text = f"{self.recorder.elapsed():10.3f} {entry.level_name:5} {entry.logger} {entry.message} {fields}".rstrip()
        self._log.write(f"{text}\n{entry.trace}")

    def add_log(self, text: str) -> None:
        """Append log text of a machine in another process, unchanged."""
        self._log.write(text)

    def transition(self, change: Transition) -> None:
        """Write a state transition of the graph."""
        before, after = (state.value if state is not None else "-" for state in (change.before, change.after))
        reason = f": {change.reason}" if change.reason else ""
        self._graph.write(f"{self.recorder.elapsed():10.3f} {change.name}: {before} -> {after}{reason}\n")

    def write(self) -> None:
        """Close the logs and write readings and plots."""
        self._log.close()
        self._graph.close()
        channels = list(self.recorder.channels.values())
        (self.folder / "readings.csv").write_text(to_csv(channels), encoding="utf-8")
        (self.folder / "overview.svg").write_text(render_plot(self.folder.name, panels_of(channels)), encoding="utf-8")
        plots = self.folder / "plots"
        plots.mkdir()
        for channel in channels:
            title = channel.title or channel.name
            picture = render_plot(title, [Panel(channel.unit or title, [channel])])
            (plots / f"{file_name(channel.name)}.svg").write_text(picture, encoding="utf-8")

    def tail(self, lines: int = 30) -> str:
        """Close the log and return its last lines, for the report of a failed test."""
        self._log.close()
        text = (self.folder / "log.txt").read_text(encoding="utf-8").splitlines()
        return "\n".join(text[-lines:])


class LogSink:
    """A log sink that writes to the artefacts."""

    def __init__(self, artefacts: Artefacts) -> None:
        self._artefacts = artefacts

    def write(self, entry: Entry) -> None:
        """Write a message."""
        try:
            self._artefacts.log(entry)
        except Exception:  # a sink never raises; the folder may be gone, or the disk full
            traceback.print_exc()

    def close(self) -> None:
        """Do nothing: the artefacts close their own files."""
