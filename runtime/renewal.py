"""Renewed certificates: files that changed on disk serve new connections; those that live keep what they have."""

from __future__ import annotations

from typing import Final

import structlog
import trio

from hal.linux.inotify import Inotify
from rpc.tls import ServerTls, TlsError
from runtime.source import places

SETTLE: Final = 0.2
"""Seconds without a notice after which certificate and key count as written: tools write one after the other."""


async def renew(tls: ServerTls, log: structlog.stdlib.BoundLogger) -> None:
    """Reload `tls` whenever one of its files changes, until cancelled.

    What cannot be used is logged with its reason, and the certificate in use stays. If the kernel refuses to watch,
    that is logged, and it returns.
    """
    try:
        inotify = Inotify()
    except OSError as error:
        log.error("a renewed certificate will not be noticed", reason=error.strerror)
        return
    complained = ""
    try:
        while True:
            # Watches are set before the files are read, so that no change falls between the two.
            found = [places(path.absolute()) for path in (tls.certificate, tls.key)]
            names = set().union(*(names for _, names in found))
            for path, failure in inotify.watch(set().union(*(folders for folders, _ in found))):
                log.error("a renewed certificate will not be noticed", path=str(path), reason=failure.strerror)
            try:
                if tls.reload():
                    log.info("the certificate was renewed", not_after=tls.facts.not_after.isoformat())
                complained = ""
            except TlsError as error:
                if str(error) != complained:
                    complained = str(error)
                    log.error("the new certificate cannot be used; the one in use stays", reason=complained)
            await inotify.wait(names)
            quiet = False
            while not quiet:
                with trio.move_on_after(SETTLE) as pause:
                    await inotify.wait(names)
                quiet = pause.cancelled_caught
    finally:
        inotify.close()
