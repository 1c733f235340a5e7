"""A value that does not fit where it should go: what was expected, what stands there, and the path to it."""

from __future__ import annotations

from typing import Any, Final

from schema.secrets import is_secret_path

_SHOWN: Final = 60  # characters of a value that an error quotes


class FitError(Exception):
    """A value does not fit. Containers add their part of the path as it passes through them."""

    def __init__(self, expected: str, value: Any) -> None:
        super().__init__(expected)
        self.expected = expected
        self.value = value
        self.path: list[str] = []

    def inside(self, step: str) -> None:
        """Note one level further out where the value stands."""
        self.path.append(step)

    def where(self) -> str:
        """The path as a person would point at it: `positions.2.values`."""
        return ".".join(reversed(self.path))

    def __str__(self) -> str:
        where = self.where()
        text = f"expected {self.expected}, got {self._shown(where)}"
        return f"{where}: {text}" if where else text

    def _shown(self, where: str) -> str:
        if is_secret_path(where.split(".")):
            return f"{type(self.value).__name__} (not shown)"
        if self.value is None:
            return "None"
        try:
            text = repr(self.value)
        except Exception:  # of a class that is not ours
            text = "..."
        if len(text) > _SHOWN:
            text = f"{text[: _SHOWN - 3]}..."
        return text if type(self.value).__name__ in text else f"{text} ({type(self.value).__name__})"


def plain(value: Any) -> Any:
    """What a scalar of a numeric library stands for, such as numpy.float32; anything else unchanged."""
    item = getattr(value, "item", None)
    if callable(item) and not isinstance(value, (str, bytes, dict, list, tuple)):
        try:
            return item()
        except (TypeError, ValueError):
            return value
    return value
