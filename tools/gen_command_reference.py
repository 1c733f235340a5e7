"""Writes docs/reference/machine-command.md from the help of the command line.

python tools/gen_command_reference.py          # write it
python tools/gen_command_reference.py --check  # exit 1 if it is not current
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "machine-command.md"

HEAD = """\
# The command `machine`

<!-- Written by tools/gen_command_reference.py; `python tools/gen_command_reference.py` brings it up to date. -->

{doc}

| Exit code | Meaning |
|---|---|
| 0 | done |
| 1 | the machine says no; for `machine check`: the file has mistakes |
| 2 | wrong usage |
| 3 | the machine cannot be reached |
| 130 | ended by Ctrl-C |
"""


def page() -> str:
    """The whole page."""
    from runtime.operator.cli import main as group

    parts = [HEAD.format(doc="Looks at a machine and moves it, over its own RPC.")]
    parts += [_section(name, command) for name, command in _all("", group)]
    return "\n".join(parts)


def _all(prefix: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    for name, command in group.commands.items():
        yield f"{prefix}{name}", command
        if isinstance(command, click.Group):
            yield from _all(f"{prefix}{name} ", command)


def _section(name: str, command: click.Command) -> str:
    command = copy.copy(command)
    vars(command)["_help_option"] = None  # click keeps that of an earlier context, which may have had other names
    context = click.Context(
        command,
        info_name=f"machine {name}",
        max_content_width=100,
        terminal_width=100,
        help_option_names=["-h", "--help"],
    )
    return f"## machine {name}\n\n```text\n{command.get_help(context)}\n```\n"


def _lines() -> Iterator[str]:
    if not PAGE.exists() or PAGE.read_text() != page():
        yield f"{PAGE.relative_to(ROOT)} is not current: run python tools/gen_command_reference.py"


def main() -> int:
    """Write the page, or with --check say whether it is current."""
    if "--check" in sys.argv[1:]:
        problems = list(_lines())
        print("\n".join(problems))
        return 1 if problems else 0
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main())
