"""Write docs/reference/machine/cloud/v1/cloud.proto from the tables in rpc/api/cloud_v1.py."""

from __future__ import annotations

from pathlib import Path

from rpc.api import cloud_v1

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / cloud_v1.FILE

HEAD = (
    "// Calls of machine-cloud that are not part of the published API. Their roles are in docs/reference/security.md.",
    "// Written by tools/gen_cloud_proto.py from rpc/api/cloud_v1.py; `make generate` brings it up to date.",
    "",
)


def page() -> str:
    """Return the text of the file."""
    return "\n".join((*HEAD, *cloud_v1.proto_text())) + "\n"
