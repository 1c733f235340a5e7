"""The address of a server to connect to."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class DialTarget:
    """Address of a server: host and port, or the path of a Unix socket."""

    host: str
    port: int
    path: str = ""
    tls: bool = False

    @classmethod
    def parse(cls, text: str) -> DialTarget:
        """Parse `host:port`, `[v6]:port`, `unix:/path` or `http[s]://host[:port]`; ValueError for anything else."""
        if text.startswith("unix:"):
            path = text[5:]
            path = path[2:] if path.startswith("//") else path
            if not path:
                raise ValueError(f"{text!r} has no socket path: write unix:/path/of/socket")
            return cls("localhost", 0, path)
        tls = text.startswith("https://")
        parts = urlsplit(text if tls or text.startswith("http://") else f"//{text}")
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
        if not parts.hostname or port is None or parts.path not in ("", "/") or parts.query or parts.username:
            raise ValueError(f"{text!r} is not an address: write host:port, unix:/path or https://host")
        return cls(parts.hostname, port, tls=tls)

    @property
    def authority(self) -> str:
        """Host and port for the :authority field of requests."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if self.port else host
