"""Renewed certificates: files that changed on disk serve new connections; those that live keep what they have."""

from __future__ import annotations

from pathlib import Path

import structlog

from rpc.tls import ServerTls, TlsError
from support.watched import follow


async def renew(tls: ServerTls, log: structlog.stdlib.BoundLogger) -> None:
    """Reload `tls` whenever one of its files changes, until cancelled.

    What cannot be used is logged with its reason, and the certificate in use stays. If the kernel refuses to watch,
    that is logged, and it returns.
    """
    complained = ""

    def reload() -> None:
        nonlocal complained
        try:
            if tls.reload():
                log.info("the certificate was renewed", not_after=tls.facts.not_after.isoformat())
            complained = ""
        except TlsError as error:
            if str(error) != complained:
                complained = str(error)
                log.error("the new certificate cannot be used; the one in use stays", reason=complained)

    def refused(path: Path | None, error: OSError) -> None:
        of = {"path": str(path)} if path is not None else {}
        log.error("a renewed certificate will not be noticed", reason=error.strerror, **of)

    await follow((tls.certificate, tls.key), reload, refused)
