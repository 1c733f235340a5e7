"""What the command line of machine-server decides, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

EXIT_OK: Final = 0  # stopped as asked, or did what was asked
EXIT_FAILED: Final = 1  # could not start, or failed
EXIT_USAGE: Final = 2  # the command line is wrong
EXIT_STUCK: Final = 3  # asked to stop, but did not within the limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """One start of machine-server; the command line's own words and defaults."""

    config: Path
    debug: bool = False
    log_file: Path | None = None
    no_tls: bool = False  # serve without TLS whatever certificate there is
    allow_insecure_creds: bool = False
    allow_open_shell: bool = False  # shells, file copies and tunnels for clients of a machine without keys
    reveal_sensitive_config_diffs: bool = False
    untrusted_env: bool = False
    web_profile: bool = False
    output_telemetry: bool = False
    ftdc: bool = False  # the command line's default is true: a machine in a test keeps no files
    shared_dir: Path | None = None  # static files of the pages that take the place of the program's own
    mdns: bool = False  # likewise: not -disable-mdns
    hardware: str = "linux"  # family of hardware, see runtime.hardware
    webrtc: bool = False  # asked for by name; there is none yet
    ready_fd: int | None = None  # descriptor told when the RPC port is open: MACHINE_READY_FD
