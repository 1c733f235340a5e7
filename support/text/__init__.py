"""Text for people, on pages and in terminals. Pure.

Public, in the order in which to read them:

* `spreadsheet`: Escaping of CSV cells against formula injection in spreadsheets
* `words` (module): Text formatting of names, times, numbers and values for pages
* `terminal` (module): Formats tables, states and values as text for a terminal
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.text import terminal as terminal
    from support.text import words as words
    from support.text.spreadsheet import harmless_cell as harmless_cell
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "spreadsheet": ["harmless_cell"],
        },
        modules=["words", "terminal"],
    )
