"""Error for a value that cannot be converted: what was expected, the value, and the path to it."""

from __future__ import annotations

from typing import Any, Final

from schema import is_secret_path

_SHOWN: Final = 60  # characters of a value in an error message


class FitError(Exception):
    """Value that cannot be converted. Containers add their part of the path while the error propagates."""

    def __init__(self, expected: str, value: Any) -> None:
        super().__init__(expected)
        self.expected = expected
        self.value = value
        self.path: list[str] = []

    def inside(self, step: str) -> None:
        """Prepend a step to the path of the value."""
        self.path.append(step)

    def where(self) -> str:
        """Return the path, such as `positions.2.values`."""
        return ".".join(reversed(self.path))

    def __str__(self) -> str:
        where = self.where()
        text = f"expected {self.expected}, got {self._value_text(where)}"
        return f"{where}: {text}" if where else text

    def _value_text(self, where: str) -> str:
        if is_secret_path(where.split(".")):
            return f"{type(self.value).__name__} (not shown)"
        if self.value is None:
            return "None"
        try:
            text = repr(self.value)
        except Exception:  # __repr__ of an arbitrary class
            text = "..."
        if len(text) > _SHOWN:
            text = f"{text[: _SHOWN - 3]}..."
        return text if type(self.value).__name__ in text else f"{text} ({type(self.value).__name__})"


def plain(value: Any) -> Any:
    """Convert a scalar of a numeric library, such as numpy.float32, to Python; return other values unchanged."""
    item = getattr(value, "item", None)
    if callable(item) and not isinstance(value, (str, bytes, dict, list, tuple)):
        try:
            return item()
        except (TypeError, ValueError):
            return value
    return value
