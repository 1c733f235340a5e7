"""The parts of machine-server other than resources, with a folder for each part.

Public, in the order in which to read them:

* `data.files.names`: Names of folders and files of captured data, in the published layout
* `mdns.records`: The DNS records of a machine
* `web.live`: Live updates by WebSocket, one for each open page: changed parts of the page, readings, new log lines
* `data.files.read`: Reading of capture files, including open, truncated and damaged ones
* `web.logs`: Log lines for programs: a WebSocket that sends the newest matching lines, and new ones on request
* `data.rows`: Captured readings as rows of plain values, for export
* `data.export`: Export of captured readings as CSV, JSON lines or Parquet
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.parts.data.export import FORMATS as FORMATS
    from runtime.parts.data.export import Export as Export
    from runtime.parts.data.export import csv_cell as csv_cell
    from runtime.parts.data.export import jsonl_line as jsonl_line
    from runtime.parts.data.export import parquet as parquet
    from runtime.parts.data.files.names import OPEN as OPEN
    from runtime.parts.data.files.names import safe_part as safe_part
    from runtime.parts.data.files.read import Content as Content
    from runtime.parts.data.files.read import capture_files as capture_files
    from runtime.parts.data.files.read import is_being_written as is_being_written
    from runtime.parts.data.files.read import moment as moment
    from runtime.parts.data.files.read import read_capture_file as read_capture_file
    from runtime.parts.data.rows import Selection as Selection
    from runtime.parts.data.rows import captured_rows as captured_rows
    from runtime.parts.data.rows import flattened as flattened
    from runtime.parts.mdns.records import SERVICE as SERVICE
    from runtime.parts.web.live import REFUSED as REFUSED
    from runtime.parts.web.logs import INVALID as INVALID
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "data.files.names": ["OPEN", "safe_part"],
            "mdns.records": ["SERVICE"],
            "web.live": ["REFUSED"],
            "data.files.read": ["Content", "capture_files", "is_being_written", "moment", "read_capture_file"],
            "web.logs": ["INVALID"],
            "data.rows": ["Selection", "captured_rows", "flattened"],
            "data.export": ["FORMATS", "Export", "csv_cell", "jsonl_line", "parquet"],
        },
    )
