"""Reloads renewed certificates for new connections; open connections keep the old ones."""

from __future__ import annotations

from pathlib import Path

import structlog

from rpc.network.tls import ServerTls, TlsError
from support.watched import follow


async def renew(tls: ServerTls, log: structlog.stdlib.BoundLogger) -> None:
    """Reload `tls` whenever one of its files changes, until cancelled.

    If the new certificate is unusable, the reason is logged and the current one is kept. If the files cannot be
    watched, that is logged and this function returns.
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
