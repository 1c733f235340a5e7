"""Size limits of the journal, as a drop-in file of journald. Pure."""

from __future__ import annotations

from typing import Final

from agent.system.notice import notice

PATH: Final = "etc/systemd/journald.conf.d/80-machine-agent.conf"
DEFAULT_MEGABYTES: Final = 512
OMIT: Final = -1
STORAGES: Final = ("persistent", "volatile", "auto", "none")
"""Values of Storage=; the first is the default."""


def journald_text(system_megabytes: int = 0, runtime_megabytes: int = 0, storage: str = "") -> str | None:
    """Return the text of the drop-in file at `PATH`, or None if there must be no such file.

    A limit of 0, or one that is not valid, means 512 MB; -1 omits the limit, and without any limit there is no file.
    A storage that is not valid means persistent.
    """
    if system_megabytes == runtime_megabytes == OMIT:
        return None
    lines = ["[Journal]"]
    for key, megabytes in (("SystemMaxUse", system_megabytes), ("RuntimeMaxUse", runtime_megabytes)):
        if megabytes != OMIT:
            lines.append(f"{key}={megabytes if megabytes > 0 else DEFAULT_MEGABYTES}M")
    lines.append(f"Storage={storage if storage in STORAGES else STORAGES[0]}")
    removal = "set logging_journald_system_max_use_megabytes and logging_journald_runtime_max_use_megabytes to -1"
    return notice("#", removal) + "\n".join(lines) + "\n"
