"""The log: a ring of lines in memory, which are printed and uploaded. Pure."""

LINES = 40
LENGTH = 200  # characters of a line


class Line:
    """A line of the log."""

    def __init__(self, seconds: int, nanos: int, level: str, logger: str, text: str) -> None:
        self.seconds = seconds
        self.nanos = nanos
        self.level = level
        self.logger = logger
        self.text = text


class Log:
    """The last lines. Lines that were neither uploaded nor kept are counted."""

    def __init__(self, lines: int = LINES) -> None:
        self.lines: list[Line] = []
        self.lost = 0
        self._most = lines

    def add(self, line: Line) -> None:
        """Add a line."""
        line.text = line.text[:LENGTH]
        if len(self.lines) >= self._most:
            self.lines.pop(0)
            self.lost += 1
        self.lines.append(line)

    def take(self, count: int) -> "list[Line]":
        """Remove and return the oldest lines for an upload; with a line that counts the lost ones."""
        taken = self.lines[:count]
        self.lines = self.lines[count:]
        if self.lost and taken:
            first = taken[0]
            lost = Line(first.seconds, first.nanos, "warn", "log", f"{self.lost} lines were not kept")
            taken.insert(0, lost)
            self.lost = 0
        return taken

    def put_back(self, lines: "list[Line]") -> None:
        """Return lines whose upload has failed, as far as there is room."""
        room = self._most - len(self.lines)
        self.lost += max(0, len(lines) - room)
        self.lines = lines[len(lines) - min(room, len(lines)) :] + self.lines
