"""machine-cloud with limits of seconds instead of a minute: `python -m tests.e2e.cloud.brisk OPTIONS`.

Unit tests and tests/sim/cloud_triggers test the real limits in virtual time, so real processes need not wait for them.
"""

from __future__ import annotations

import importlib
import sys
from datetime import timedelta
from typing import Any, Final

SILENCE: Final = timedelta(seconds=8)
LIMITS: Final[tuple[tuple[str, str, Any], ...]] = (
    ("cloud.domain.machines.online", "SILENCE", SILENCE),
    ("cloud.web.api.push", "PRESENCE", SILENCE.total_seconds() / 3),
    ("cloud.domain.triggering.outbox", "LEASE", timedelta(seconds=5)),
)
"""Module, name and value. The order matters: modules import SILENCE by name."""


def main() -> None:
    for module, name, value in LIMITS:
        usual = getattr(importlib.import_module(module), name)
        assert type(usual) is type(value), f"{module}.{name}"
        for other in list(sys.modules.values()):  # also those that were imported before and have it by name
            if vars(other).get(name) is usual:
                setattr(other, name, value)
    importlib.import_module("cloud.server.cli").main()


if __name__ == "__main__":
    main()
