"""The check of `except` clauses around nurseries."""

from textwrap import indent

import pytest

from tools.check_groups import findings

NURSERY = "async with trio.open_nursery() as nursery:\n    await work(nursery)\n"


def guarded(body: str, clause: str = "except OSError:") -> str:
    return f"async def run(self):\n    try:\n{indent(body, ' ' * 8)}    {clause}\n        pass\n"


@pytest.mark.parametrize(
    "source",
    [
        guarded(NURSERY),
        guarded(NURSERY, "except (OSError, ValueError):"),
        guarded("await self.inner()\n") + f"async def inner(self):\n{indent(NURSERY, ' ' * 4)}",
        guarded(f"try:\n{indent(NURSERY, '    ')}except KeyError:\n    pass\n"),
    ],
)
def test_a_plain_clause_is_reported(source: str) -> None:
    assert 2 in [line for line, _ in findings(source)]


@pytest.mark.parametrize(
    "source",
    [
        guarded(NURSERY, "except* OSError:"),
        guarded(NURSERY, "except BaseExceptionGroup:"),
        guarded(NURSERY, "except trio.TooSlowError:"),
        guarded(f"with ungrouped(OSError):\n{indent(NURSERY, '    ')}"),
        guarded("nursery.start_soon(self.inner)\n") + f"async def inner(self):\n{indent(NURSERY, ' ' * 4)}",
        guarded("await read()\n"),
    ],
)
def test_other_clauses_are_not(source: str) -> None:
    assert findings(source) == []
