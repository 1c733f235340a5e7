"""Child process that executes one SQL query with DuckDB.

Its standard input has a frame with the settings, its standard output one with the readings that the query needs. Then
its input has a frame that says what the cloud copied, and its output frames with the columns and with rows as BSON, and
at last the end; or a refusal. The progress bar of DuckDB goes to its standard error. It confines itself before it
parses the query: it can then read the files of the readings, change its scratch folder, and do nothing else, so that a
query that exploits DuckDB finds no other data. It has few imports, because it starts for every query.
"""

from __future__ import annotations

import datetime
import decimal
import json
import marshal
import os
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, BinaryIO, Final

from cloud.domain.queries import confinement
from cloud.domain.queries.answer import converter, readable, row_of
from cloud.domain.queries.statement import (
    WHOLE,
    Invalid,
    Path,
    Uses,
    checked,
    is_fixed,
    on_whole,
    source_conditions,
    table_count,
    time_bounds,
    uses,
)
from cloud.domain.queries.view import (
    COPIES,
    EARLIEST,
    LATEST,
    RECENT,
    SOURCES,
    Needs,
    StatementView,
    StoredReadings,
    columns_of,
    described_query,
    kinds_of,
    kinds_query,
    sources_table,
)

NEEDS, COLUMNS, ROWS, END, REFUSAL = b"?", b"=", b"+", b".", b"-"
"""Kinds of frames: kind, length in four bytes, content. In JSON: Needs; pairs of name and type of the columns; and
kind, message, remedy and position of a refusal. Rows are BSON."""
NICE: Final = 10  # lower priority than the calls of others
MANY: Final = 200_000  # sources; the cloud decodes 4 MiB at most
PIECE: Final = 256 * 1024  # bytes of rows in a frame
SILENT: Final = 500  # milliseconds before the first progress
SPILL: Final = "spill"  # folder of DuckDB in the scratch folder
LONGEST: Final = 200  # characters of the name of a type
_SOME: Final = 1000  # rows that are fetched at once
_TYPED: Final = (datetime, decimal, uuid)  # modules that DuckDB imports for values


class QueryRefusal(Exception):
    """Kind (a value of ErrorKind), message and remedy of an error reply, and the number of bytes before a mistake."""


def main() -> None:
    """Execute the query on standard input."""
    stdin, stdout = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing else may write to the answer, such as the progress bar
    import _duckdb  # its package `duckdb` opens a database with threads, which would not be confined

    json.loads(b'{"a": ["\\u00fc", 1.5]}')  # trigger late imports while files can be opened
    settings = _received(stdin)
    if settings["stages"] is not None:
        _translator()  # import it while files can be opened
    folder = settings["folder"]
    try:
        confinement.confine(
            [path for path, *_ in settings["files"] if not path.startswith(f"{folder}/{COPIES}/")],
            folder,
            cpu=settings["cpu"],
            memory=settings["memory"],
            written=settings["spill"],
            descriptors=settings["descriptors"],
        )
        sys.meta_path.clear()  # nothing can be imported any more, and nothing looks for it
        execute(_duckdb, settings, stdin, stdout)
        _send(stdout, END, b"")
    except confinement.Unconfined as error:
        text = f"this computer's kernel cannot confine a query: it has no {error}"
        remedy = "use a kernel with Landlock (Linux 5.13 or newer, `lsm=landlock,...`), or allow user namespaces"
        _refuse(stdout, "unsupported", text, remedy)
    except FileNotFoundError:
        text = "some old readings cannot be read: their file does not exist"
        remedy = "restore the file from a backup: `machine-cloud doctor` lists the missing ones"
        _refuse(stdout, "unavailable", text, remedy)
    except QueryRefusal as refused:
        kind, message, remedy, *position = refused.args
        _refuse(stdout, kind, message, remedy, _characters(settings["query"], *position))
    except Invalid as invalid:
        _refuse(stdout, "invalid", *invalid.args)
    except MemoryError:
        _refuse(stdout, *_needs_memory().args)
    except RecursionError:
        _refuse(stdout, "invalid", "the query or a value is nested too deeply", "nest less")
    except _duckdb.Error as error:
        _refuse(stdout, *_refusal(_duckdb, error, folder))
    except ValueError as error:
        _refuse(stdout, "invalid", f"a value of the result cannot be sent: {error}", "convert it to text")
    stdout.flush()
    os._exit(0)  # skip cleanup


def execute(engine: Any, settings: dict[str, Any], stdin: BinaryIO, stdout: BinaryIO) -> None:
    """Execute the query and write its rows; Invalid, Refused, or an error of the engine."""
    query, stages = settings["query"], settings["stages"]
    if stages is not None:
        query = _translator()(stages)
    if "\0" in query:
        raise Invalid("the query contains NUL", "remove it")
    database = opened(engine, settings)
    tree = checked(_parsed(database, query))
    text, changed, used = query, on_whole(tree), uses(tree)
    if changed:
        text = _text(database, tree)
    database.execute(sources_table(settings["folder"]))
    needs = _needs(engine, database, tree, used)
    view = StatementView(columns_of(settings["columns"]), used)
    # The type of a field without a column is that of most of its values, whatever the statement excludes.
    sent = Needs() if view.unknown else needs
    if sent.sources is not None and len(sent.sources) > MANY:
        sent = sent._replace(sources=None)
    _send(stdout, NEEDS, json.dumps(sent).encode())
    stdout.flush()
    rest, kinds = _received(stdin), dict[Path, str]()
    settings |= rest
    settings["planned"] //= max(1, table_count(tree))
    if "columns" in rest:  # new files have others
        view = StatementView(columns_of(settings["columns"]), used)
    if view.unknown:
        kinds = kinds_of(
            view.unknown, database.execute(kinds_query(view.unknown, StoredReadings(settings, Needs()))).fetchone()
        )
    stored, described = StoredReadings(settings, needs), dict[int, Sequence[Any]]()
    if stored.is_separate(view.width):
        described = {number: row for number, *row in database.execute(described_query(stored)).fetchall()}
    database.execute(view.text(stored, kinds, described))
    relation = _bound(engine, database, text, settings["folder"], exact=not changed and stages is None)
    names = _distinct(name.replace(f".{WHOLE}", "") if changed else name for name in relation.columns)
    _write(relation, names, settings["rows"], settings["bytes"], stdout)


def _translator() -> Callable[[Sequence[bytes]], str]:
    """Return the function that translates aggregations, which takes longer to import than most of this program."""
    from cloud.domain.queries.mql.stages import translated

    return translated


def opened(engine: Any, settings: Mapping[str, Any]) -> Any:
    """Return an empty database that can only read the files of the readings, and whose settings cannot be changed."""
    folder = settings["folder"]
    database = engine.connect(
        ":memory:",
        config={
            "threads": 1,
            "memory_limit": f"{settings['engine']}B",
            "temp_directory": f"{folder}/{SPILL}",
            "max_temp_directory_size": f"{settings['spill']}B",
            "autoinstall_known_extensions": "false",
            "autoload_known_extensions": "false",
            "allow_community_extensions": "false",
            "python_enable_replacements": "false",
            "home_directory": folder,
            "extension_directory": f"{folder}/none",
            "secret_directory": f"{folder}/none",
            "allow_persistent_secrets": "false",
        },
    )
    paths = [*(path for path, *_ in settings["files"]), f"{folder}/{RECENT}", f"{folder}/{SOURCES}"]
    # DuckDB takes three times as long for a list of many literals.
    separator = next(each for each in map(chr, range(1, 128)) if not any(each in path for path in paths))
    listed = f"string_split({_quoted(separator.join(paths))}, {_quoted(separator)})"
    for statement in (
        "SET TimeZone = 'UTC'",
        "SET enable_progress_bar = true",
        "SET enable_progress_bar_print = true",
        f"SET progress_bar_time = {SILENT}",
        "SET errors_as_json = true",
        f"SET allowed_paths = {listed}",
        f"SET allowed_directories = [{_quoted(f'{folder}/{COPIES}')}]",
        "SET enable_external_access = false",
        "SET lock_configuration = true",
    ):
        database.execute(statement)
    return database


def _parsed(database: Any, query: str) -> Any:
    (answer,) = database.execute("SELECT json_serialize_sql(?, skip_null := false)", [query]).fetchone()
    return json.loads(answer)


def _text(database: Any, tree: Mapping[str, Any]) -> str:
    statements = json.dumps({"error": False, "statements": [tree]})
    (text,) = database.execute("SELECT json_deserialize_sql(?::JSON)", [statements]).fetchone()
    return str(text)


def _needs(engine: Any, database: Any, tree: dict[str, Any], used: Uses) -> Needs:
    """Return which readings the statement does not exclude."""
    low, high, sources = EARLIEST, LATEST, None
    try:
        sources = _sources(database, tree) if table_count(tree) else []
    except engine.Error:  # the query says what is wrong
        pass
    bounds = [(lower, bound) for lower, bound in time_bounds(tree) if is_fixed(bound)]
    database.execute("BEGIN TRANSACTION")  # in which now() is always the same
    try:
        moments = [_moment(database, bound) for _, bound in bounds]
    except engine.Error:  # the query says what is wrong
        database.execute("ROLLBACK")
        moments = []
    for (lower, _), moment in zip(bounds, moments, strict=False):
        if moment is not None:
            low, high = (max(low, moment), high) if lower else (low, min(high, moment))
    return Needs(sources, low, high, used.receipts, used.texts)


def _sources(database: Any, tree: Mapping[str, Any]) -> list[int] | None:
    """Return the numbers of the sources that the statement does not exclude; None for all."""
    conditions, table = source_conditions(dict(tree))
    if not conditions:
        return None
    alias = '"' + table.replace('"', '""') + '"'
    texts = " AND ".join(f"({_expression(database, condition)})" for condition in conditions)
    return [number for (number,) in database.execute(f"SELECT number FROM sources AS {alias} WHERE {texts}").fetchall()]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _expression(database: Any, expression: Mapping[str, Any]) -> str:
    """Return the text of an expression."""
    tree = _parsed(database, "SELECT 1")["statements"][0]
    tree["node"]["select_list"] = [expression]
    return _text(database, tree).removeprefix("SELECT ")


def _moment(database: Any, expression: Mapping[str, Any]) -> int | None:
    """Return the stored time that an expression without columns means; None for NULL."""
    text = _expression(database, expression)
    (moment,) = database.execute(f"SELECT epoch_us(CAST(({text}) AS TIMESTAMP))").fetchone()
    return None if moment is None else int(moment)


def _write(relation: Any, names: Sequence[str], most: int, size: int, stdout: BinaryIO) -> None:
    types = declared = relation.types
    casts = [readable(each) for each in types]
    if casts != [str(each) for each in types]:
        columns = (
            f"#{place}" if cast == str(type_) else f"CAST(#{place} AS {cast})"
            for place, (cast, type_) in enumerate(zip(casts, types, strict=True), 1)
        )
        relation = relation.project(", ".join(columns))
        types = relation.types
    heads = [[name, str(each)[:LONGEST]] for name, each in zip(names, declared, strict=True)]
    _send(stdout, COLUMNS, json.dumps(heads).encode())
    converters = [converter(each) for each in types]
    result = relation.limit(most + 1)
    pieces, held, count, total = [], 0, 0, 0
    while rows := result.fetchmany(_SOME):
        for values in rows:
            row = row_of(names, converters, values)
            count, total, held = count + 1, total + len(row), held + len(row)
            if count > most or total > size:
                raise QueryRefusal(
                    "exhausted",
                    f"the result has more than {most} rows, or {size} bytes",
                    "add LIMIT, or select sums and averages instead of rows",
                )
            pieces.append(row)
            if held >= PIECE:
                _send(stdout, ROWS, b"".join(pieces))
                pieces, held = [], 0
    _send(stdout, ROWS, b"".join(pieces))


def _received(stdin: BinaryIO) -> dict[str, Any]:
    """Return the next frame of the cloud."""
    settings: dict[str, Any] = marshal.loads(stdin.read(int.from_bytes(stdin.read(8), "big")))
    return settings


def _send(stdout: BinaryIO, kind: bytes, content: bytes) -> None:
    stdout.write(kind + len(content).to_bytes(4, "big") + content)


def _refuse(stdout: BinaryIO, kind: str, message: str, remedy: str, position: int | None = None) -> None:
    _send(stdout, REFUSAL, json.dumps([kind, message, remedy, position]).encode())


def _bound(engine: Any, database: Any, text: str, folder: str, *, exact: bool) -> Any:
    """Return the relation of a statement; Invalid, with the place of the mistake if `text` is what the user wrote."""
    try:
        return database.sql(text)
    except (engine.BinderException, engine.CatalogException):
        try:
            database.execute(text)  # is refused by the same step, which here says where
        except (engine.BinderException, engine.CatalogException) as error:
            kind, message, remedy = _refusal(engine, error, folder)
            raise QueryRefusal(kind, message, remedy, _described(error)[1] if exact else None) from None
        raise


def _described(error: Exception) -> tuple[str, int | None]:
    """Return the message of an error of the engine, and the number of bytes before it in the statement."""
    _, _, text = str(error).partition(": ")
    try:
        about = json.loads(text)
        message = str(about["exception_message"])
    except (ValueError, TypeError, KeyError):
        return str(error), None
    position = str(about.get("position", ""))
    return message, int(position) if position.isascii() and position.isdigit() else None


def _distinct(names: Iterable[str]) -> list[str]:
    """Return names with a number where one is there before: rows are documents."""
    distinct = dict[str, None]()
    for name in names:
        each, number = name, 0
        while each in distinct:
            number += 1
            each = f"{name}_{number}"
        distinct[each] = None
    return list(distinct)


def _characters(query: str, position: int | None = None) -> int | None:
    """Return the number of characters in the first bytes of a query."""
    return None if position is None else len(query.encode()[:position].decode("utf-8", "ignore"))


def _refusal(engine: Any, error: Exception, folder: str) -> tuple[str, str, str]:
    text = _described(error)[0].replace(folder, "").encode("utf-8", "replace").decode()[:2000]
    if isinstance(error, engine.OutOfMemoryException):
        kind, message, remedy = _needs_memory().args
        return kind, message, remedy
    if isinstance(error, engine.IOException):
        if f"/{SPILL}/" in text:
            return "exhausted", "the query needs too much space on the disk", "sort or group fewer rows"
        return "unavailable", "some readings cannot be read", "`machine-cloud doctor` lists missing and damaged files"
    if isinstance(error, engine.PermissionException | engine.InternalException | engine.FatalException):
        return "invalid", "the query uses something that is not available", "select from the table `readings`"
    return "invalid", f"the query is not valid: {text}", "write it in the SQL of DuckDB; the table is `readings`"


def _needs_memory() -> QueryRefusal:
    return QueryRefusal("exhausted", "the query needs too much memory", "select fewer rows, or shorter texts")
