"""`machine-server -network-check`: runs all checks once, prints a table with remedies and sets the exit code."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import trio

from engine import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from runtime.parts.netcheck.checks import check
from runtime.parts.netcheck.finding import NetcheckFinding, failures, rows
from runtime.parts.netcheck.targets import load
from schema import ConfigError
from support.text.terminal import table


def main_check(config: Path | None) -> int:
    """Run all checks and print the findings.

    Return 0 if the network has no problems, 1 if it has, 2 if the targets or `config` cannot be read.
    """
    try:
        targets = load(os.environ, cloud=_cloud_host(config))
    except ConfigError as error:
        sys.stderr.write(f"machine-server: {error}\n")
        return EXIT_USAGE
    findings = trio.run(lambda: check(targets))
    sys.stdout.write(report(findings))
    return EXIT_FAILED if failures(findings) else EXIT_OK


def report(findings: list[NetcheckFinding]) -> str:
    """Format the findings as a table, followed by remedies for the relevant failures."""
    lines = table(("CHECK", "TARGET", "OUTCOME", "TIME", "DETAIL"), rows(findings))
    bad = failures(findings)
    if bad:
        remedies = dict.fromkeys(f"{finding.check}: {finding.remedy}" for finding in bad)
        return "\n".join([*lines, "", "The network has problems.", *remedies]) + "\n"
    result = "The network works." if findings else "No checks are configured."
    return "\n".join([*lines, "", result]) + "\n"


def _cloud_host(config: Path | None) -> str:
    """Return the host of the cloud in a configuration file, or an empty string. Raises ConfigError if it is invalid."""
    if config is None:
        return ""
    from uplink import FileSource, decode_text

    reading = FileSource(config).read()
    if reading.data is None:
        assert reading.problem is not None
        raise reading.problem
    document = decode_text(reading.data, os.environ).document
    return cloud_host(document.cloud.app_address if document is not None and document.cloud is not None else "")


def cloud_host(address: str) -> str:
    """Return the host name of a URL or of host:port, or an empty string."""
    return urlsplit(address if "://" in address else f"//{address}").hostname or ""
