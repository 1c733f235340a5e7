"""The options of machine-server, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

EXIT_OK: Final = 0  # stopped on request, or completed the request
EXIT_FAILED: Final = 1  # could not start, or failed
EXIT_USAGE: Final = 2  # the command line is wrong
EXIT_STUCK: Final = 3  # did not stop in time when requested


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a start of machine-server; names and defaults are those of the command line, except as noted."""

    config: Path
    debug: bool = False
    log_file: Path | None = None
    no_tls: bool = False  # serve without TLS even if there is a certificate
    allow_insecure_creds: bool = False
    allow_open_shell: bool = False  # shells, file copies and tunnels for clients of a machine without keys
    reveal_sensitive_config_diffs: bool = False
    untrusted_env: bool = False
    web_profile: bool = False
    output_telemetry: bool = False
    ftdc: bool = False  # true by default on the command line; false here because machines in tests keep no files
    shared_dir: Path | None = None  # static files of the pages that replace the built-in ones
    mdns: bool = False  # true by default on the command line (-disable-mdns)
    hardware: str = "linux"  # family of hardware, see engine.hardware
    webrtc: bool = True  # answer offers of WebRTC connections, of own pages and through the cloud
    ready_fd: int | None = None  # descriptor to notify when the RPC port is open: MACHINE_READY_FD
    address_file: Path | None = None  # written while the RPC port is open: MACHINE_ADDRESS_FILE
