"""Reads the attributes of a component, and says where one does not fit. Pure."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Unfit(Exception):
    """A component cannot run as it is configured; the text says where and why."""


class Attributes:
    """The attributes of a component, or of a part of it. Each method takes a default, without which it is required."""

    def __init__(self, values: "Any", path: str = "attributes", model: str = "") -> None:
        if not isinstance(values, dict):
            raise Unfit(f"{path} is {shown(values)}: expected an object")
        self.path = path
        self.model = model  # short name, for drivers of several models
        self._values = values
        self._read: list[str] = []
        self._parts: list[Attributes] = []

    def _get(self, name: str, default: "Any") -> "Any":
        self._read.append(name)
        value = self._values.get(name)
        if value is None:
            if default is None:
                raise Unfit(f"{self.path}.{name} is missing")
            return default
        return value

    def wrong(self, name: str, expected: str) -> Unfit:
        """Return the error for an attribute."""
        return Unfit(f"{self.path}.{name} is {shown(self._values.get(name))}: expected {expected}")

    def text(self, name: str, default: "str | None" = None) -> str:
        """Return a text; numbers, such as pins, are also accepted."""
        value = self._get(name, default)
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if not isinstance(value, str) or len(value) > 100:
            raise self.wrong(name, "a text")
        return value

    def choice(self, name: str, options: "tuple[Any, ...]", default: "Any" = None) -> "Any":
        """Return one of `options`."""
        value = self._get(name, default)
        if value not in options:
            raise self.wrong(name, " or ".join([str(option) for option in options]))
        return value

    def number(self, name: str, default: "float | None" = None, low: float = -1e12, high: float = 1e12) -> float:
        """Return a number from `low` to `high`."""
        value = self._get(name, default)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise self.wrong(name, f"a number from {low:g} to {high:g}")
        return value

    def whole(self, name: str, default: "int | None" = None, low: int = 0, high: int = 1 << 30) -> int:
        """Return an integer from `low` to `high`."""
        value = self.number(name, default, low, high)
        if value != int(value):
            raise self.wrong(name, "an integer")
        return int(value)

    def address(self, name: str, default: int, options: "tuple[int, ...] | range") -> int:
        """Return an I2C address, which may be a text such as 0x48."""
        value = self._get(name, default)
        try:
            address = int(value, 0) if isinstance(value, str) else int(value)
        except (TypeError, ValueError):
            address = -1
        if address not in options:
            raise self.wrong(name, " or ".join([f"0x{option:02x}" for option in options]))
        return address

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a truth value."""
        value = self._get(name, default)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def texts(self, name: str, default: "list[str] | None" = None) -> "list[str]":
        """Return a list of texts; a single text is also accepted."""
        value = self._get(name, default)
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or len(value) > 32 or not all(isinstance(item, (str, int)) for item in value):
            raise self.wrong(name, "a list of texts")
        return [str(item) for item in value]

    def part(self, name: str, default: "dict[str, Any] | None" = None) -> "Attributes":
        """Return the attributes of a part."""
        part = Attributes(self._get(name, default), f"{self.path}.{name}")
        self._parts.append(part)
        return part

    def parts(self, name: str) -> "list[Attributes]":
        """Return the attributes of a list of parts; none by default."""
        values = self._get(name, [])
        if not isinstance(values, list) or len(values) > 32:
            raise self.wrong(name, "a list of objects")
        parts = [Attributes(values[index], f"{self.path}.{name}[{index}]") for index in range(len(values))]
        self._parts.extend(parts)
        return parts

    def values(self, name: str) -> "dict[str, Any]":
        """Return an object as it is; empty by default."""
        value = self._get(name, {})
        if not isinstance(value, dict):
            raise self.wrong(name, "an object")
        return value

    def unread(self) -> "list[str]":
        """Return the paths of the attributes that were not read, because this server does not have them."""
        names = [f"{self.path}.{name}" for name in self._values if name not in self._read]
        for part in self._parts:
            names += part.unread()
        return names


def shown(value: "Any") -> str:
    """Return a value as the text of an error shows it."""
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
