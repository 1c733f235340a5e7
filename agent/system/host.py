"""What the cloud learns about a computer, by which it selects releases. Blocks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.system.os_release import parse_os_release
from uplink import platform, tags


def host_facts(root: Path = Path("/"), on: str | None = None) -> Mapping[str, Any]:
    """Return platform, distribution and tags of the system below `root`; `on` is its platform (this computer's)."""
    try:
        release = parse_os_release((root / "etc/os-release").read_text(errors="replace"))
    except OSError:
        release = parse_os_release("")
    models = [tag for tag in tags(root) if tag.startswith("pi")]
    return {"platform": on or platform(), "distro": release.platform, "tags": models}
