"""Where a machine listens now."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rpc.network import CertificateContext


class Endpoint:
    """The port of a machine: the addresses at which it listens, and the certificate it is served with."""

    def __init__(self, file: Path | None = None) -> None:
        self.addresses: tuple[str, ...] = ()
        self.tls: CertificateContext | None = None
        self._file = file

    def publish(self, addresses: tuple[str, ...], tls: CertificateContext | None) -> None:
        """Set where the machine listens; an empty tuple: nowhere. If there is a file for the agent, write it there too.

        The file is small and belongs into a folder in memory, such as /run. Raises OSError if it cannot be written.
        """
        self.addresses, self.tls = addresses, tls
        if self._file is None:
            return
        part = self._file.with_name(f"{self._file.name}.{os.getpid()}")
        part.write_text(json.dumps({"pid": os.getpid(), "addresses": addresses, "tls": self.secure}))
        part.replace(self._file)

    @property
    def secure(self) -> bool:
        """Whether other computers reach the port by TLS."""
        return self.tls is not None and self.tls.context is not None
