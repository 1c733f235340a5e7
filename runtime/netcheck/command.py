"""`machine-server -network-check`: every check once, a table, remedies and an exit code."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import trio

from runtime.netcheck.checks import check
from runtime.netcheck.finding import Finding, failures, rows
from runtime.netcheck.targets import load
from runtime.operator.tables import table
from runtime.options import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from schema.errors import ConfigError


def main_check(config: Path | None) -> int:
    """Run and print everything: 0 if the network is fit, 1 if not, 2 if the targets or `config` cannot be read."""
    try:
        targets = load(os.environ, cloud=_cloud_host(config))
    except ConfigError as error:
        sys.stderr.write(f"machine-server: {error}\n")
        return EXIT_USAGE
    findings = trio.run(lambda: check(targets))
    sys.stdout.write(report(findings))
    return EXIT_FAILED if failures(findings) else EXIT_OK


def report(findings: list[Finding]) -> str:
    """The table, and below it what to do about what counts."""
    lines = table(("CHECK", "TARGET", "OUTCOME", "TIME", "DETAIL"), rows(findings))
    bad = failures(findings)
    if bad:
        remedies = dict.fromkeys(f"{one.check}: {one.remedy}" for one in bad)
        return "\n".join([*lines, "", "The network has problems.", *remedies]) + "\n"
    said = "The network is fit." if findings else "Nobody was asked."
    return "\n".join([*lines, "", said]) + "\n"


def _cloud_host(config: Path | None) -> str:
    """The host of the cloud that a configuration names; ConfigError if the file is not one."""
    if config is None:
        return ""
    from uplink.files import FileSource, decode_text

    reading = FileSource(config).read()
    if reading.data is None:
        assert reading.problem is not None
        raise reading.problem
    document = decode_text(reading.data, os.environ).document
    return cloud_host(document.cloud.app_address if document is not None and document.cloud is not None else "")


def cloud_host(address: str) -> str:
    """The host name of a URL or of host:port; empty for none."""
    return urlsplit(address if "://" in address else f"//{address}").hostname or ""
