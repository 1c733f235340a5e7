"""The names of the nodes that are not resources. Pure."""

from __future__ import annotations

from typing import Final

INTERNAL: Final = "internal/"
"""Names of the nodes of the server's own parts begin with this."""

RPC: Final = f"{INTERNAL}rpc"
"""The node of the port; its value is the addresses at which it listens."""

REMOTE: Final = f"{INTERNAL}remote/"
"""Names of the nodes of remotes begin with this."""

SESSIONS: Final = f"{INTERNAL}sessions"
"""The node of the sessions of clients."""


def package_node(kind: str, name: str) -> str:
    """Return the node of a package."""
    return f"{INTERNAL}package/{kind}/{name}"
