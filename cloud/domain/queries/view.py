"""The view `readings`, in SQL: readings in Parquet files and recent ones, as a table with the published columns. Pure.

`data` is a struct of the fields that the statement uses, and of no others: DuckDB reads every column of a struct, even
if only one of its members is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from cloud.domain.queries.statement import COLUMNS, TABLE, WHOLE, Path, Uses

TYPES: Final = {"boolean": "BOOLEAN", "float64": "DOUBLE", "varchar": "VARCHAR"}
"""Types of columns in the catalog, and in DuckDB."""
JSON: Final = "JSON"
_KINDS: Final = {
    "BOOLEAN": ("BOOLEAN",),
    "DOUBLE": ("DOUBLE", "BIGINT", "UBIGINT", "HUGEINT"),
    "VARCHAR": ("VARCHAR",),
}
"""Types of columns, and the types of values in JSON that they can have."""
_SOURCE: Final = ("number", *COLUMNS[:9], "additional_parameters", "tags")
"""Columns of the file of sources, whose first are those of `cloud.domain.data.sources.DataSource`."""
_OF_SOURCES: Final = (*COLUMNS[:9], "tags", "additional_parameters")
"""Columns of the table that are the same for all readings of a source."""
EARLIEST: Final = -1 << 63
LATEST: Final = (1 << 63) - 1
"""Stored times before and after all others."""
RECENT: Final = "recent.tsv"
SOURCES: Final = "sources.csv"
COPIES: Final = "files"
"""Folder with copies of files that cannot be read where they are."""


class Column:
    """A column of the catalog with a field of readings: `path` is where its values are in a reading."""

    def __init__(self, number: int, path: Path, type_: str, *, second: bool) -> None:
        self.number = number
        self.path = path
        self.type = type_
        self.second = second  # whether another column has the values of another type at the same path

    @property
    def name(self) -> str:
        """Name of the values in files, for the whole reading."""
        return f"c{self.number}"

    @property
    def member(self) -> str:
        """Name of the values of all readings, for a member of `data`."""
        return f"m{self.number}"


def columns_of(listed: Iterable[tuple[int, str, str]]) -> list[Column]:
    """Return the columns in number, name and type of columns of the catalog."""
    entries = sorted(listed)
    names = {name.casefold() for _, name, _ in entries}
    columns, paths = list[Column](), set[Path]()
    for number, name, type_ in entries:
        base = name.removesuffix(f" ({type_})")
        path = tuple((base if base.casefold() in names else name).split("."))
        columns.append(Column(number, path, TYPES[type_], second=path in paths))
        paths.add(path)
    return columns


class Needs(NamedTuple):
    """Readings that a statement may need: of some sources, or of all, captured from `low` to `high` (stored times)."""

    sources: list[int] | None = None
    low: int = EARLIEST
    high: int = LATEST
    receipts: bool = True  # whether the times of receipt are needed
    texts: bool = True  # whether the readings themselves are

    def covering(self) -> Callable[[int, int, int], bool]:
        """Return a function that says whether a file may have some: with its source, and its first and last times."""
        sources = None if self.sources is None else frozenset(self.sources)
        low, high = self.low, self.high
        return lambda source, first, last: first <= high and last >= low and (sources is None or source in sources)

    def within(self) -> list[str]:
        """Return the conditions for rows in the range: none without bounds, because comparing takes time, too."""
        bounds = ((">=", self.low, EARLIEST), ("<=", self.high, LATEST))
        return [f"requested {operator} {bound}" for operator, bound, always in bounds if bound != always]

    def of_sources(self) -> list[str]:
        """Return the conditions for recent rows of the sources."""
        if self.sources is None:
            return []
        return [f"source IN ({', '.join(map(str, self.sources))})" if self.sources else "false"]


class StoredReadings:
    """Where the readings are: see `cloud.domain.queries.query`. `folder` has the files RECENT and SOURCES."""

    def __init__(self, settings: Mapping[str, Any], needs: Needs) -> None:
        self.folder: str = settings["folder"]
        self.needs = needs
        self._planned: int = settings["planned"]
        self._numbers: Mapping[str, int] = settings["numbers"]
        self._longest = max(settings["longest"], 1 << 16)
        self.again: Sequence[str] = settings["again"]
        self.groups: dict[tuple[int, bool], list[str]] = {}
        """Paths of the files that may have such readings, by source, and by whether some of them have a text."""
        covers = needs.covering()
        for path, source, first, last, texts in settings["files"]:
            if covers(source, first, last):
                self.groups.setdefault((source, texts), []).append(path)

    def files(self, *, texts: bool) -> list[str]:
        """Return the paths of the files with readings that have a text, or of the others."""
        return [path for (_, have), paths in self.groups.items() if have == texts for path in paths]

    def is_separate(self, width: int) -> bool:
        """Return whether a view has a part for the files of each source, with `width` columns of the files.

        Planning a part takes half a millisecond. Joining a reading with its source, and grouping by the names in its
        columns, takes 20 to 50 ns, and a file has some 20,000.
        """
        return len(self.groups) * (len(COLUMNS) + width) <= self._planned

    def recent(self) -> str:
        """Return the table of recent readings: source, requested, received, number, and the whole text."""
        names = "source: 'BIGINT', requested: 'BIGINT', received: 'BIGINT', number: 'BIGINT', data: 'VARCHAR'"
        return (
            f"read_csv({_quoted(f'{self.folder}/{RECENT}')}, columns = {{{names}}}, auto_detect = false, "
            "header = false, delim = '\t', quote = '', escape = '', nullstr = 'no null', "
            f"max_line_size = {self._longest})"
        )

    def parquet(self, columns: Sequence[Column], files: Sequence[str], *, texts: bool = True) -> str:
        """Return the table of readings in files: the same, and columns; the whole text only with `texts`."""
        keys = ("source", "requested", "received", "number")
        entries = [(self._numbers[name], name, "BIGINT") for name in keys]
        if texts:
            entries.append((self._numbers["data"], "data", "VARCHAR"))
        entries += ((each.number, each.name, each.type) for each in columns)
        schema = ", ".join(
            f"{number}: {{name: '{name}', type: '{type_}', default_value: NULL}}" for number, name, type_ in entries
        )
        return f"read_parquet([{', '.join(map(_quoted, files))}], schema = MAP {{{schema}}})"


class _Node:
    """A member of `data`: a column, an expression, or a struct."""

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.columns: list[Column] = []
        self.expression = ""
        self.inner = False  # whether the statement names something below
        self.whole = False  # whether it has the member WHOLE

    def at(self, path: Path, *, folded: bool = False) -> _Node | None:
        node: _Node | None = self
        for name in path:
            if node is None:
                return None
            same = (each for key, each in node.children.items() if folded and key.casefold() == name.casefold())
            node = node.children.get(name) or next(same, None)
        return node

    def make(self, path: Path) -> _Node:
        node = self
        for name in path:
            node = node.children.setdefault(name, _Node())
        return node

    def all_columns(self) -> Iterator[Column]:
        stack = [self]
        while stack:
            node = stack.pop()
            yield from node.columns
            stack += node.children.values()


class StatementView:
    """The view for a statement: `used` is what it uses, `columns` those of the catalog."""

    def __init__(self, columns: Sequence[Column], used: Uses) -> None:
        self._every = _Node()
        for column in sorted(columns, key=lambda column: column.path):  # in the order of stored readings
            self._every.make(column.path).columns.append(column)
        self._columns: dict[int, Column] = {}  # for whole readings
        self._used: dict[int, Column] = {}  # for members
        self._members = _Node()
        self.unknown: list[Path] = []
        """Paths that the statement names, and that are no column: `kinds` of `text` tells their types."""
        for path in sorted(used.paths):
            self._use(path)
        if used.every:  # after the paths: of names that differ in case only, those that the statement has are members
            self._add(self._every.all_columns())
        if used.whole:
            self._whole((), self._every)

    def _use(self, path: Path) -> None:
        inner = path[:-1] if path[-1] == WHOLE else path
        node, place = self._every, list[str]()
        for name in inner:
            following = node.at((name,), folded=True)
            if following is None:
                if not node.columns:
                    self.unknown.append((*place, *inner[len(place) :]))
                return
            if place:
                self._members.make(tuple(place)).inner = True
            place.append(next(key for key, each in node.children.items() if each is following))
            node = following
        if node.columns and inner == path:
            self._add(node.columns)
        else:
            self._add(node.all_columns())
            self._whole(tuple(place), node)

    def _add(self, columns: Iterable[Column]) -> None:
        for column in columns:
            if not column.second:
                self._members.make(column.path).columns.append(column)
                self._used[column.number] = column

    def _whole(self, path: Path, node: _Node) -> None:
        member = self._members.make(path)
        member.whole = True
        member.expression = _whole(path, node)
        self._columns.update((column.number, column) for column in node.all_columns())

    def text(self, stored: StoredReadings, kinds: Mapping[Path, str], described: Mapping[int, Sequence[Any]]) -> str:
        """Return the statement that creates the view; `kinds` are types of `unknown` paths.

        `described` are the rows of `described_query`: a file has readings of one source, so they are constants there.
        If there would be too many parts, the readings are joined with their sources.
        """
        for path, kind in kinds.items():
            if (member := self._members.at(path[:-1], folded=True)) is None or not member.columns:
                self._members.make(path).expression = _value(path, kind)
        whole, used = self._columns.values(), self._used.values()
        every = list((self._columns | self._used).values())
        within = stored.needs.within()
        recent = [*within, *stored.needs.of_sources()]
        if stored.again:
            recent.append(f"number NOT IN (SELECT number FROM {stored.parquet((), stored.again, texts=False)})")
        # A reading that its columns do not give back has its text, too: for what is not in a column of its file. The
        # column of texts takes as long to read as several of numbers even if it is empty, and most files have no texts.
        names, members = ([column.name for column in whole], [f"{each.name} AS {each.member}" for each in used])
        filled = [f"coalesce({each.name}, {_value(each.path, each.type, 'data')}) AS {each.member}" for each in used]
        parsed = [f"{_value(each.path, each.type, 'data')} AS {each.member}" for each in used]
        empty = [f"NULL::{column.type} AS {column.name}" for column in whole]  # not needed: these have a whole text

        def sealed(of_source: str, files: Sequence[str], *, texts: bool) -> str:
            text, values = ("data", filled) if texts else ("NULL::VARCHAR", members)
            return _part(of_source, text, [*names, *values], stored.parquet(every, files, texts=texts), within)

        joined, parts = [_part("source", "data", [*empty, *parsed], stored.recent(), recent)], list[str]()
        if stored.is_separate(len(every)):
            for (source, texts), files in stored.groups.items():
                if source in described:
                    parts.append(sealed(_constants(described[source]), files, texts=texts))
        else:
            groups = ((stored.files(texts=texts), texts) for texts in (False, True))
            joined += [sealed("source", files, texts=texts) for files, texts in groups if files]
        inner = ["requested", "received", "whole", *names, *(column.member for column in used)]
        parts.append(
            f"SELECT {', '.join([*_OF_SOURCES, *inner])} FROM ({' UNION ALL '.join(joined)}) AS every "
            "JOIN sources ON sources.number = every.source"
        )
        times = "make_timestamp(requested) AS time_requested, make_timestamp(received) AS time_received"
        return (
            f"CREATE VIEW {TABLE} AS SELECT {', '.join(COLUMNS[:9])}, {times}, tags, additional_parameters, "
            f"{_struct(self._members)} AS data FROM ({' UNION ALL '.join(parts)}) AS every"
        )

    @property
    def width(self) -> int:
        """Number of columns of files that the view reads."""
        return len(self._columns | self._used)


def described_query(stored: StoredReadings) -> str:
    """Return the query for the sources of files: their numbers and their columns."""
    numbers = sorted({source for source, _ in stored.groups})
    return f"SELECT number, {', '.join(_OF_SOURCES)} FROM sources WHERE number IN ({', '.join(map(str, numbers)) or 0})"


def _constants(row: Sequence[Any]) -> str:
    """Return the columns of a source, in the order of _OF_SOURCES, as constants."""
    *texts, tags, parameters = row
    values = [*map(_quoted, texts), f"[{_among(tags)}]::VARCHAR[]", f"{_quoted(parameters)}::JSON"]
    return ", ".join(f"{value} AS {name}" for value, name in zip(values, _OF_SOURCES, strict=True))


def sources_table(folder: str) -> str:
    """Return the statement that reads the file of sources."""
    names = ", ".join(f"{_quoted(name)}: '{'BIGINT' if name == 'number' else 'VARCHAR'}'" for name in _SOURCE)
    read = (
        f"read_csv({_quoted(f'{folder}/{SOURCES}')}, columns = {{{names}}}, auto_detect = false, header = false, "
        "delim = ',', quote = '\"', escape = '\"', allow_quoted_nulls = false, nullstr = 'no null')"
    )
    replaced = "tags::JSON::VARCHAR[] AS tags, additional_parameters::JSON AS additional_parameters"
    return f"CREATE TABLE sources AS SELECT * REPLACE ({replaced}) FROM {read}"


def kinds_query(paths: Sequence[Path], stored: StoredReadings) -> str:
    """Return a query with four numbers for each path: how many readings have a number, a text, a boolean, and a list or
    object there. Only texts of readings are read, which few in files have: their other fields are columns.
    """
    counts = []
    for path in paths:
        type_ = f"json_type(data, {_pointer(path)})"
        counts += [f"count(*) FILTER (WHERE {type_} IN ({_among(_KINDS[kind])}))" for kind in ORDER]
        counts.append(f"count(*) FILTER (WHERE {type_} IN ('ARRAY', 'OBJECT'))")
    texts = f"SELECT data FROM {stored.recent()}"
    if files := stored.files(texts=True):
        texts += f" UNION ALL SELECT data FROM {stored.parquet((), files)} WHERE data IS NOT NULL"
    return f"SELECT {', '.join(counts)} FROM ({texts})"


ORDER: Final = ("DOUBLE", "VARCHAR", "BOOLEAN")


def kinds_of(paths: Sequence[Path], counts: Sequence[int]) -> dict[Path, str]:
    """Return the types of paths in an answer to `kinds_query`: that of most values, JSON for lists and objects.

    A path without values has numbers, so that a query for them is valid before the first reading arrives.
    """
    kinds = {}
    for place, path in enumerate(paths):
        *typed, other = counts[4 * place : 4 * place + 4]
        kinds[path] = JSON if other and not any(typed) else ORDER[typed.index(max(typed))]
    return kinds


def _part(of_source: str, text: str, values: Sequence[str], table: str, conditions: Sequence[str]) -> str:
    columns = f"{of_source}, requested, received, {text} AS whole{_listed(values)}"
    return f"SELECT {columns} FROM {table}{_where(conditions)}"


def _where(conditions: Sequence[str]) -> str:
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def _struct(node: _Node) -> str:
    members, taken = [], {WHOLE}
    for name, child in node.children.items():
        if name and name.casefold() not in taken:
            taken.add(name.casefold())
            nested = child.whole or (child.children and (child.inner or not child.columns))
            value = _struct(child) if nested else child.expression or child.columns[0].member
            members.append(f"{_identifier(name)} := {value}")
    if node.whole or not members:
        members.append(f"{_identifier(WHOLE)} := {node.expression or 'whole::JSON'}")
    return f"struct_pack({', '.join(members)})"


def _whole(path: Path, node: _Node) -> str:
    """Return the JSON of the part of readings at a path."""
    built = f"json_merge_patch('{{}}', {_object(node)})" if node.children else "NULL"
    text = f"json_extract(whole, {_pointer(path)})" if path else "whole::JSON"
    otherwise = "NULL" if path else "'{}'"
    return f"CASE WHEN whole IS NULL THEN coalesce({built}, {otherwise}::JSON) ELSE {text} END"


def _object(node: _Node) -> str:
    """Return the JSON of columns. The names of nodes are data, not identifiers: they differ in case, too."""
    values = [f"to_json({column.name})" for column in node.columns]
    if node.children:
        entries = ", ".join(f"{_quoted(name)}, {_object(child)}" for name, child in node.children.items())
        empty = " AND ".join(
            f"{column.name} IS NULL" for child in node.children.values() for column in child.all_columns()
        )
        values.insert(0, f"CASE WHEN {empty} THEN NULL ELSE json_object({entries}) END")
    return values[0] if len(values) == 1 else f"coalesce({', '.join(values)})"


def _value(path: Path, kind: str, text: str = "whole") -> str:
    """Return the value at a path of a JSON text, if it has the type `kind`."""
    pointer = _pointer(path)
    if kind == JSON:
        return f"json_extract({text}, {pointer})"
    value = f"json_extract_string({text}, {pointer})"
    condition = f"json_type({text}, {pointer}) IN ({_among(_KINDS[kind])})"
    if kind != "VARCHAR":
        value = f"{value}::{kind}"
    if kind == "DOUBLE":  # as in columns, where a single NaN would make every sum NaN
        condition += f" AND isfinite({value})"
    return f"CASE WHEN {condition} THEN {value} END"


def _pointer(path: Path) -> str:
    return _quoted("".join("/" + name.replace("~", "~0").replace("/", "~1") for name in path))


def _among(values: Iterable[str]) -> str:
    return ", ".join(map(_quoted, values))


def _listed(values: Iterable[Any]) -> str:
    return "".join(f", {value}" for value in values)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
