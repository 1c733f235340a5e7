"""Reloads renewed certificates for new connections; open connections keep the old ones."""

from __future__ import annotations

from pathlib import Path

import structlog

from rpc.network import ServerTls, TlsError
from support.files import follow_files


async def renew(tls: ServerTls, log: structlog.stdlib.BoundLogger) -> None:
    """Reload `tls` whenever one of its files changes, until cancelled.

    If the new certificate is unusable, the reason is logged and the current one is kept. If the files cannot be
    watched, that is logged and this function returns.
    """
    logged_reason = ""

    def reload() -> None:
        nonlocal logged_reason
        try:
            if tls.reload():
                log.info("the certificate was renewed", not_after=tls.facts.not_after.isoformat())
            logged_reason = ""
        except TlsError as error:
            if str(error) != logged_reason:
                logged_reason = str(error)
                log.error("the new certificate cannot be used; the current one is kept", reason=logged_reason)

    def refused(path: Path | None, error: OSError) -> None:
        details = {"path": str(path)} if path is not None else {}
        log.error("renewals of the certificate will not be detected", reason=error.strerror, **details)

    await follow_files((tls.certificate, tls.key), reload, refused)
