"""The tests in docs/howto/test-in-a-guest.md, run unchanged."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "test-in-a-guest.md"
for rest in PAGE.read_text().split("```python\n")[1:]:
    exec(compile(rest.partition("```")[0], str(PAGE), "exec"), globals())
