"""Comments in the text of a configuration, as people write it in the editor: `// ...` and `/* ... */`. Pure.

Machines and clients receive JSON without comments. The text is stored next to the document.
"""

from __future__ import annotations

import re
from typing import Final

from schema import ErrorKind, MachineError

_BEGIN: Final = re.compile(r'"|//|/\*')
_INSIDE: Final = re.compile(r'(?:[^"\\\n]++|\\[^\n]){1,1000}+')  # part of a string; limited so that threads take turns
_VISIBLE: Final = re.compile(r"[^\s]")


def without_comments(text: str) -> str:
    """Return the text with spaces in place of comments, so that every other character keeps its position."""
    if "//" not in text and "/*" not in text:
        return text
    parts: list[str] = []
    done = end = 0
    while (match := _BEGIN.search(text, end)) is not None:
        start, end = match.span()
        if match[0] == '"':
            while (inside := _INSIDE.match(text, end)) is not None:
                end = inside.end()
            end += text.startswith('"', end)
            continue
        close = text.find("\n", end) if match[0] == "//" else text.find("*/", end)
        end = len(text) if close < 0 else close + (0 if match[0] == "//" else 2)
        parts += text[done:start], _VISIBLE.sub(" ", text[start:end])
        done = end
    return "".join((*parts, text[done:]))


def check_written(text: str) -> None:
    """Raise INVALID for characters that the database cannot keep; outside of comments, JSON forbids them anyway."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise MachineError(
            "a comment contains a character that is not text",
            kind=ErrorKind.INVALID,
            remedy="remove it, or write it again",
        )
