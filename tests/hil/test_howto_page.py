"""The tests of docs/howto/test-in-a-guest.md, run as they are printed there."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "test-in-a-guest.md"
_, _, rest = PAGE.read_text().partition("```python\n")
exec(compile(rest.partition("```")[0], str(PAGE), "exec"), globals())
