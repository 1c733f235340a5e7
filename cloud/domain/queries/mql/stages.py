"""Aggregations of MongoDB as a statement in SQL: a table of stages, each of which changes a `Pipeline`. Pure.

A stage that needs the result of those before makes a subquery of them; $match, $sort, $limit and $project share one
SELECT where they can, so that bounds of time leave out files, and fields that nothing names are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from cloud.domain.queries.mql.conditions import condition
from cloud.domain.queries.mql.expressions import expression, packed
from cloud.domain.queries.mql.reading import read
from cloud.domain.queries.mql.values import (
    ANY,
    LIST,
    MAX_NAME,
    NUMBER,
    OBJECT,
    TEXT,
    TIME,
    Expression,
    as_number,
    field,
    identifier,
    invalid,
    output_name,
    unsupported,
)
from cloud.domain.queries.statement import COLUMNS, DATA, TABLE, Invalid

MAX_STAGES: Final = 50
MAX_SQL: Final = 1024 * 1024  # characters
_KINDS: Final = {
    **dict.fromkeys(COLUMNS, TEXT),
    "time_requested": TIME,
    "time_received": TIME,
    "tags": LIST,
    "additional_parameters": ANY,
    DATA: OBJECT,
}
_ORDER: Final = '"$order"'  # a name that no field can have


class Pipeline:
    """The stages so far: fields of the documents, as expressions over `source`, and what is done with them."""

    def __init__(self) -> None:
        self.source = TABLE
        self.fields = {name: Expression(identifier(name), _KINDS[name]) for name in COLUMNS}
        self.plain = True  # whether every field is a field of the source
        self.where: list[str] = []
        self.order: list[str] = []
        self.limit: int | None = None
        self.skip = 0
        self._count = 0

    def sql(self, *more: str) -> str:
        """Return a statement; `more` are further entries of its result."""
        entries = [*(f"{each.sql} AS {identifier(name)}" for name, each in self.fields.items()), *more]
        text = f"SELECT {', '.join(entries)}{self.rest()}"
        if len(text) > MAX_SQL:
            raise Invalid("the aggregation is too large", "use fewer fields and operators")
        return text

    def rest(self, *, ordered: bool = True) -> str:
        """Return the part of a statement that follows the entries of its result."""
        parts = [f" FROM {self.source}"]
        if self.where:
            parts.append(f" WHERE {' AND '.join(self.where)}")
        if self.order and ordered:
            parts.append(f" ORDER BY {', '.join(self.order)}")
        if self.limit is not None:
            parts.append(f" LIMIT {self.limit}")
        if self.skip:
            parts.append(f" OFFSET {self.skip}")
        return "".join(parts)

    def nest(self) -> None:
        """Make a subquery of the stages so far, which keeps their order."""
        order = self.order
        text = self.sql(f"row_number() OVER (ORDER BY {', '.join(order)}) AS {_ORDER}") if order else self.sql()
        fields = {name: Expression(self._column(name), each.kind) for name, each in self.fields.items()}
        self.replace(text, fields)
        if order:
            self.order = [f"t{self._count}.{_ORDER}"]

    def replace(self, text: str, fields: Mapping[str, Expression]) -> None:
        """Continue with the result of a statement, whose fields have the names of `fields`."""
        self._count += 1
        self.source = f"({text}) AS t{self._count}"
        self.fields = dict(fields)
        self.plain = True
        self.where, self.order, self.limit, self.skip = [], [], None, 0

    def result(self, fields: Mapping[str, Expression], tail: str) -> None:
        """Continue with `fields` as the documents; `tail` follows them in the statement."""
        entries = ", ".join(f"{each.sql} AS {identifier(name)}" for name, each in fields.items())
        names = {name: Expression(self._column(name), each.kind) for name, each in fields.items()}
        self.replace(f"SELECT {entries}{tail}", names)

    def begin(self, *, cut: bool = True) -> None:
        """Begin a stage that reads fields; with `cut`, one that must come after $limit and $skip."""
        if not self.plain or (cut and (self.limit is not None or self.skip)):
            self.nest()

    def _column(self, name: str) -> str:
        return f"t{self._count + 1}.{identifier(name)}"


def translated(stages: Sequence[bytes]) -> str:
    """Return the statement for the stages of an aggregation, each in BSON. Invalid names what is not supported."""
    if not stages or len(stages) > MAX_STAGES:
        raise Invalid(f"there are {len(stages)} stages", f"send 1 to {MAX_STAGES}")
    pipeline = Pipeline()
    for number, content in enumerate(stages, 1):
        place = f"stage {number}"
        try:
            document = read(content)
            if len(document) != 1:
                raise invalid(f"it has {len(document)} names")
            ((name, value),) = document.items()
            place += f", {name[:MAX_NAME]}"
            stage = STAGES.get(name)
            if stage is None:
                raise unsupported("the stage")
            stage(pipeline, value)
        except Invalid as refused:
            message, remedy, _ = refused.args
            raise Invalid(f"{place}: {message}", remedy) from None
    return pipeline.sql()


def _match(pipeline: Pipeline, value: Any) -> None:
    pipeline.begin()
    pipeline.where.append(condition(pipeline.fields, value))


def _sort(pipeline: Pipeline, value: Any) -> None:
    if not isinstance(value, dict) or not value:
        raise invalid("it needs an object with fields")
    pipeline.begin()
    keys = []
    for path, direction in value.items():
        if isinstance(direction, bool) or direction not in (1, -1):
            raise unsupported(f"the direction {direction!r}", "use 1 or -1")
        key = field(pipeline.fields, path)
        if key.sql == "NULL":  # no document has it
            continue
        keys.append(f"{key.sql} {'ASC NULLS FIRST' if direction == 1 else 'DESC NULLS LAST'}")
    pipeline.order = keys


def _number(value: Any, least: int) -> int:
    whole = isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0
    if not whole or not least <= value < 1e12:
        raise invalid(f"it needs a whole number of at least {least}")
    return int(value)


def _limit(pipeline: Pipeline, value: Any) -> None:
    number = _number(value, 1)
    pipeline.limit = number if pipeline.limit is None else min(pipeline.limit, number)


def _skip(pipeline: Pipeline, value: Any) -> None:
    number = _number(value, 0)
    if pipeline.limit is not None:
        pipeline.nest()
    pipeline.skip += number


def _project(pipeline: Pipeline, value: Any) -> None:
    if not isinstance(value, dict) or not value:
        raise invalid("it needs an object with fields")
    kept = {name: each for name, each in value.items() if name != "_id" or each not in (0, False)}
    without = {name for name, each in kept.items() if _is_flag(each) and not each}
    if not kept:
        return
    if without:
        if len(without) < len(kept):
            raise invalid("fields to keep and fields to leave out are mixed")
        _unset(pipeline, list(without))
        return
    pipeline.begin(cut=False)
    tree: dict[str, Any] = {}
    for path, each in kept.items():
        fitting = field(pipeline.fields, path) if _is_flag(each) else expression(pipeline.fields, each)
        _put(tree, path.split("."), fitting)
    pipeline.fields = {name: _packed(each) for name, each in tree.items()}
    pipeline.plain = False


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool | int | float)


def _put(tree: dict[str, Any], path: Sequence[str], value: Expression) -> None:
    for name in path:
        output_name(name)
    for name in path[:-1]:
        tree = tree.setdefault(name, {})
        if not isinstance(tree, dict):
            raise invalid(f"{'.'.join(path)[:100]} is there twice")
    if path[-1] in tree:
        raise invalid(f"{'.'.join(path)[:100]} is there twice")
    tree[path[-1]] = value


def _packed(value: Any) -> Expression:
    if isinstance(value, Expression):
        return value
    parts = (f"{identifier(name)} := {_packed(each).sql}" for name, each in value.items())
    return Expression(f"struct_pack({', '.join(parts)})", OBJECT)


def _add_fields(pipeline: Pipeline, value: Any) -> None:
    if not isinstance(value, dict) or not value:
        raise invalid("it needs an object with fields")
    pipeline.begin(cut=False)
    added = {}
    for name, each in value.items():
        output_name(name)
        added[name] = expression(pipeline.fields, each)
    pipeline.fields |= added
    pipeline.plain = False


def _unset(pipeline: Pipeline, value: Any) -> None:
    for name in value if isinstance(value, list) else [value]:
        if not isinstance(name, str) or "." in name:
            raise unsupported("leaving out a part of a field", "name the fields to keep with $project")
        pipeline.fields.pop(name, None)
    if not pipeline.fields:
        raise unsupported("leaving out every field")


def _group(pipeline: Pipeline, value: Any) -> None:
    if not isinstance(value, dict) or "_id" not in value:
        raise invalid("it needs an object with _id")
    pipeline.begin()
    fields = pipeline.fields
    members = value["_id"]
    key = packed(fields, members) if _is_object(members) else expression(fields, members)
    single = key.sql == "NULL"
    result = {"_id": key}
    for name, each in value.items():
        if name == "_id":
            continue
        output_name(name)
        if not isinstance(each, dict) or len(each) != 1:
            raise invalid(f"{name[:60]!r} needs one accumulator")
        ((operator, operand),) = each.items()
        make = ACCUMULATORS.get(operator)
        if make is None:
            raise unsupported(f"the accumulator {operator}")
        result[name] = make(pipeline, operand)
    tail = pipeline.rest(ordered=False)
    pipeline.result(result, f"{tail} HAVING count(*) > 0" if single else f"{tail} GROUP BY 1")


def _is_object(value: Any) -> bool:
    return isinstance(value, dict) and not any(name.startswith("$") for name in value)


def _ordered(pipeline: Pipeline) -> str:
    return f" ORDER BY {', '.join(pipeline.order)}" if pipeline.order else ""


def _sum(pipeline: Pipeline, operand: Any) -> Expression:
    return Expression(f"coalesce(sum({as_number(expression(pipeline.fields, operand))}), 0)", NUMBER)


def _numbers(function: str) -> Callable[[Pipeline, Any], Expression]:
    def make(pipeline: Pipeline, operand: Any) -> Expression:
        return Expression(f"{function}({as_number(expression(pipeline.fields, operand))})", NUMBER)

    return make


def _extreme(function: str) -> Callable[[Pipeline, Any], Expression]:
    def make(pipeline: Pipeline, operand: Any) -> Expression:
        value = expression(pipeline.fields, operand)
        return Expression(f"{function}({value.sql})", value.kind)

    return make


def _end(function: str) -> Callable[[Pipeline, Any], Expression]:
    def make(pipeline: Pipeline, operand: Any) -> Expression:
        value = expression(pipeline.fields, operand)
        return Expression(f"{function}({value.sql}{_ordered(pipeline)})", value.kind)

    return make


def _list(distinct: str) -> Callable[[Pipeline, Any], Expression]:
    def make(pipeline: Pipeline, operand: Any) -> Expression:
        value = expression(pipeline.fields, operand).sql
        order = "" if distinct else _ordered(pipeline)
        filtered = f" FILTER (WHERE {value} IS NOT NULL)"
        return Expression(f"coalesce(list({distinct}{value}{order}){filtered}, [])", LIST)

    return make


def _counted(pipeline: Pipeline, operand: Any) -> Expression:
    if operand != {}:
        raise invalid("$count needs an empty object")
    return Expression("count(*)", NUMBER)


ACCUMULATORS: Final[Mapping[str, Callable[[Pipeline, Any], Expression]]] = {
    "$sum": _sum,
    "$avg": _numbers("avg"),
    "$stdDevPop": _numbers("stddev_pop"),
    "$stdDevSamp": _numbers("stddev_samp"),
    "$min": _extreme("min"),
    "$max": _extreme("max"),
    "$first": _end("first"),
    "$last": _end("last"),
    "$push": _list(""),
    "$addToSet": _list("DISTINCT "),
    "$count": _counted,
}


def _count(pipeline: Pipeline, value: Any) -> None:
    if not isinstance(value, str):
        raise invalid("it needs the name of a field")
    output_name(value)
    pipeline.begin()
    tail = pipeline.rest(ordered=False)
    pipeline.result({value: Expression("count(*)", NUMBER)}, f"{tail} HAVING count(*) > 0")


def _sort_by_count(pipeline: Pipeline, value: Any) -> None:
    _group(pipeline, {"_id": value, "count": {"$sum": 1}})
    _sort(pipeline, {"count": -1})


def _unwind(pipeline: Pipeline, value: Any) -> None:
    kept = False
    if isinstance(value, dict):
        if others := set(value) - {"path", "preserveNullAndEmptyArrays"}:
            raise unsupported(sorted(others)[0])
        kept, value = bool(value.get("preserveNullAndEmptyArrays", False)), value.get("path")
    if not isinstance(value, str) or not value.startswith("$"):
        raise invalid("it needs the path of a field, such as $tags")
    if "." in value:
        raise unsupported("a path with a dot", "give the list another name with $addFields before")
    name = value[1:]
    pipeline.begin()
    current = pipeline.fields.get(name, Expression("NULL"))
    kind = TEXT if name == "tags" and pipeline.source == TABLE else ANY
    whole = current.sql if current.kind == LIST else f"to_json({current.sql})"
    single = f"[{whole}]"
    if current.kind != LIST:
        listed = f"CASE WHEN json_type({whole}) = 'ARRAY' THEN from_json({whole}, '[\"JSON\"]')"
        whole = f"{listed} WHEN {current.sql} IS NULL THEN NULL ELSE {single} END"
    if kept:
        whole = f"CASE WHEN coalesce(len({whole}), 0) = 0 THEN [NULL] ELSE {whole} END"
    pipeline.fields[identifier(name)[1:-1].replace('""', '"')] = Expression(f"unnest({whole})", kind)
    pipeline.nest()


STAGES: Final[Mapping[str, Callable[[Pipeline, Any], None]]] = {
    "$match": _match,
    "$sort": _sort,
    "$limit": _limit,
    "$skip": _skip,
    "$project": _project,
    "$addFields": _add_fields,
    "$set": _add_fields,
    "$unset": _unset,
    "$group": _group,
    "$count": _count,
    "$sortByCount": _sort_by_count,
    "$unwind": _unwind,
}
