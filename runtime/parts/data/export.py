"""Export of captured readings as CSV, JSON lines or Parquet. Blocking; does not need a server.

CSV and Parquet have a column for each value (`readings.temperature`). The columns are known only after everything was
read, so these formats read all files twice. Memory holds only one file or one batch.
"""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final

from runtime.parts.data.files.read import Content
from runtime.parts.data.rows import BINARY, FACTS, ReadingRow, Selection, captured_rows, flattened
from schema import ErrorKind, MachineError
from support.text import harmless_cell

BATCH: Final = 10_000  # rows written to a Parquet file at once


@dataclass(slots=True)
class Export:
    """An export: its source and its results."""

    folder: Path
    selection: Selection
    media: Path | None = None  # folder for the bytes of binary readings
    rows: int = 0
    media_files: int = 0
    damaged: list[Content] = field(default_factory=list)

    def all_rows(self) -> Iterator[ReadingRow]:
        """Yield every row, count it, and write its bytes to `media`."""
        for row in captured_rows(self.folder, self.selection, self.damaged):
            if row.binary is not None and self.media is not None:
                (self.media / row.file).write_bytes(row.binary)
                self.media_files += 1
            self.rows += 1
            yield row

    def columns(self) -> list[str]:
        """Read everything, and return the columns: facts, then values by name."""
        names: set[str] = set()
        binary = False
        for row in captured_rows(self.folder, self.selection):
            binary = binary or row.binary is not None
            names.update(name for name, _ in flattened(row.data))
        return [*FACTS, *(BINARY if binary else ()), *sorted(names - {*FACTS, *BINARY})]


def _facts(row: ReadingRow, media: Path | None) -> dict[str, Any]:
    facts = dict(row.facts)
    for name in ("time_requested", "time_received"):
        facts[name] = facts[name].isoformat(timespec="microseconds").replace("+00:00", "Z")
    if row.binary is not None:
        path = str(media / row.file) if media is not None else ""
        facts |= {"mime_type": row.mime_type, "bytes": len(row.binary), "labels": list(row.labels), "file": path}
    return facts


def jsonl(export: Export, out: IO[str]) -> None:
    """Write a line of JSON for each reading, with unchanged values under `data`."""
    for row in export.all_rows():
        out.write(jsonl_line(row, export.media) + "\n")


def jsonl_line(row: ReadingRow, media: Path | None) -> str:
    """Return one reading as JSON."""
    line = _facts(row, media)
    if row.binary is None:
        line["data"] = row.data
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def csv_(export: Export, out: IO[str]) -> None:
    """Write a line of CSV (RFC 4180) for each reading. Missing values are empty, lists are JSON."""
    writer = csv.DictWriter(out, export.columns(), restval="", extrasaction="ignore")
    writer.writerow({name: harmless_cell(name) for name in writer.fieldnames})
    for row in export.all_rows():
        writer.writerow({name: csv_cell(value) for name, value in _flat(row, export.media).items()})


def _flat(row: ReadingRow, media: Path | None) -> dict[str, Any]:
    return {**_facts(row, media), **dict(flattened(row.data))}


def csv_cell(value: Any) -> Any:
    """Return a value for CSV: integers without a fraction, lists as JSON, text that is not interpreted as a formula."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, (list, Mapping)):
        return _text(value)
    return harmless_cell(value) if isinstance(value, str) else value


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""


def parquet(export: Export, path: Path) -> None:
    """Write a Parquet file. Raises MachineError (UNAVAILABLE) if pyarrow is not installed.

    Columns are numbers, booleans or text, depending on their values; mixed columns and lists are JSON text.
    """
    try:
        arrow: Any = importlib.import_module("pyarrow")
        files: Any = importlib.import_module("pyarrow.parquet")
    except ModuleNotFoundError:
        raise MachineError(
            "Parquet needs the library pyarrow, which is not installed",
            kind=ErrorKind.UNAVAILABLE,
            remedy="`pip install pyarrow`, or export CSV or JSON lines",
        ) from None
    kinds = _kinds(export)
    types = {"number": arrow.float64(), "bool": arrow.bool_(), "text": arrow.string(), "time": _time(arrow)}
    schema = arrow.schema([(name, types[kind]) for name, kind in kinds.items()])
    with files.ParquetWriter(str(path), schema) as writer:
        batch: list[Mapping[str, Any]] = []
        for row in export.all_rows():
            batch.append(_typed(row, export.media, kinds))
            if len(batch) >= BATCH:
                writer.write_table(arrow.Table.from_pylist(batch, schema))
                batch = []
        writer.write_table(arrow.Table.from_pylist(batch, schema))


def _time(arrow: Any) -> Any:
    return arrow.timestamp("us", tz="UTC")


def _kinds(export: Export) -> dict[str, str]:
    """Read everything, and return the type of each column: number, bool, text or time."""
    kinds: dict[str, str] = {}
    for row in captured_rows(export.folder, export.selection):
        row_kinds = dict.fromkeys(BINARY, "text") | {"bytes": "number"} if row.binary is not None else {}
        for name, value in flattened(row.data):
            if value is not None:
                row_kinds[name] = _kind(value)
        for name, kind in row_kinds.items():
            kinds[name] = kind if kinds.get(name, kind) == kind else "text"
    facts = dict.fromkeys(FACTS, "text") | {"time_requested": "time", "time_received": "time"}
    return facts | {name: kinds[name] for name in (*BINARY, *sorted(kinds.keys() - {*BINARY, *FACTS})) if name in kinds}


def _kind(value: Any) -> str:
    return "bool" if isinstance(value, bool) else "number" if isinstance(value, (int, float)) else "text"


def _typed(row: ReadingRow, media: Path | None, kinds: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in (
        _flat(row, media) | {key: row.facts[key] for key in ("time_requested", "time_received")}
    ).items():
        text = value is not None and kinds.get(name) == "text" and not isinstance(value, str)
        values[name] = (_text(value) or None) if text else value
    return values


FORMATS: Final[Mapping[str, Callable[[Export, IO[str]], None]]] = {"csv": csv_, "jsonl": jsonl}
"""Text formats by name."""
