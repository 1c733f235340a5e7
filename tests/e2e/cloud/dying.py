"""machine-cloud as in `sealing`, killed before a statement of its migration: `python -m tests.e2e.cloud.dying OPTIONS`.

MACHINE_TEST_DIES_AT is the number of the statement, counted from 1.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import count
from typing import Any, cast

from cloud.store import migrations, session
from tests.e2e.cloud import sealing


def main() -> None:
    last, numbers, statements = int(os.environ["MACHINE_TEST_DIES_AT"]), count(1), migrations.statements

    def mortal(step: str) -> Iterator[str]:
        for statement in statements(step):
            if next(numbers) == last:
                os.kill(os.getpid(), signal.SIGKILL)
            yield statement

    for module in (migrations, session):
        cast(Any, module).statements = mortal
    sealing.main()


if __name__ == "__main__":
    main()
