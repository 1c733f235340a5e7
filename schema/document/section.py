"""Base class of the typed parts of the machine document."""

from __future__ import annotations

from typing import Any

import msgspec

from schema.secrets import masked


class Section(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Immutable object of the document, compared by value. Its repr hides secrets."""

    def __repr__(self) -> str:
        values: dict[str, Any] = msgspec.structs.asdict(self)
        return (
            f"{type(self).__name__}({', '.join(f'{key}={masked(value, (key,))!r}' for key, value in values.items())})"
        )
