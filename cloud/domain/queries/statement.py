"""Check of a statement, and what it uses of the column `data`. Pure.

DuckDB parses the statement and returns its syntax tree as JSON, if it is a SELECT. A kind of table or clause that is
not listed here is refused, so a new one of a later DuckDB is refused as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

TABLE: Final = "readings"
DATA: Final = "data"
RECEIVED: Final = "time_received"
WHOLE: Final = "_json"
"""Member of `data` with the whole reading as JSON, exactly as it arrived."""

COLUMNS: Final = (
    "organization_id",
    "location_id",
    "robot_id",
    "robot_name",
    "part_id",
    "part_name",
    "component_type",
    "component_name",
    "method_name",
    "time_requested",
    RECEIVED,
    "tags",
    "additional_parameters",
    DATA,
)
"""Columns of the table, as published."""

Path = tuple[str, ...]
Tree = dict[str, Any]

FUNCTIONS: Final = frozenset({"range", "generate_series", "unnest", "json_each", "json_tree"})
"""Functions that may be tables. All others read files, settings or secrets, or execute text."""
REFUSED: Final = frozenset({"current_setting", "getenv", "getvariable", "nextval", "currval", "write_log"})
KINDS: Final = frozenset(
    {
        "SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE",
        "BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "PIVOT", "CTE",
        "ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "DISTINCT_MODIFIER",
        "ORDER_DEFAULT", "ASCENDING", "DESCENDING",
    }
)  # fmt: skip
"""Kinds of nodes that are no expression."""

_NAME: Final = re.compile(r"[\w ]+")
_EQUAL: Final = "COMPARE_EQUAL"
_LOWER: Final = {
    "COMPARE_GREATERTHAN": (True,),
    "COMPARE_GREATERTHANOREQUALTO": (True,),
    "COMPARE_LESSTHAN": (False,),
    "COMPARE_LESSTHANOREQUALTO": (False,),
    _EQUAL: (True, False),
}
"""For a comparison with a time on the left: whether the right side is a lower bound."""
_FIXED: Final = frozenset({"CONSTANT", "CAST", "FUNCTION"})  # classes of expressions
_OF_SOURCES: Final = frozenset(
    {"CONSTANT", "COLUMN_REF", "COMPARISON", "BETWEEN", "CONJUNCTION", "OPERATOR", "FUNCTION"}
)
_TEXT_FUNCTIONS: Final = frozenset({"~~", "!~~", "~~*", "!~~*", "lower", "upper", "starts_with", "contains", "suffix"})
_STEADY: Final = re.compile(
    r"[-+*]|now|today|current_(?:timestamp|date)|get_current_timestamp|date_(?:trunc|add|sub)|make_(?:timestamp|date)|"
    r"to_(?:years|months|weeks|days|hours|minutes|seconds|milliseconds|microseconds|timestamp)|trunc|strptime"
)
_JSON: Final = re.compile(r"to_json|json|json_.*|->>?")
_TEXTS: Final = frozenset({"json", "varchar"})
_STEP: Final = re.compile(r'\.(?:"([^"]+)"|([^."\[\]*]+))')


class Invalid(Exception):
    """A statement that is refused: message, remedy, and the number of characters before the mistake, or None."""

    def __init__(self, message: str, remedy: str, position: int | None = None) -> None:
        super().__init__(message, remedy, position)


class Uses:
    """What a statement uses of the table: fields of `data` that it names, by paths; whether it may use `data` as a
    whole, and every field; and whether it may use the times of receipt.
    """

    def __init__(self) -> None:
        self.paths: set[Path] = set()
        self.whole = False
        self.every = False  # fields that it does not name, as `data.*` does
        self.receipts = False

    @property
    def texts(self) -> bool:
        """Whether anything in the readings is used."""
        return self.whole or self.every or bool(self.paths)


def checked(answer: Tree) -> Tree:
    """Return the tree of a single SELECT in an answer of `json_serialize_sql`; Invalid for anything else."""
    if answer["error"]:
        message = str(answer.get("error_message", ""))
        if "Only SELECT" in message or "CTE needs a SELECT" in message:
            raise Invalid("this is not a SELECT statement", "begin with SELECT, WITH or FROM")
        position = str(answer.get("position", ""))
        place = int(position) if position.isascii() and position.isdigit() else None
        raise Invalid(f"the query is not valid: {message}", "write it in the SQL of DuckDB", place)
    if len(answer["statements"]) != 1:
        raise Invalid("there is more than one statement, or none", "send a single SELECT")
    tree: Tree = answer["statements"][0]
    names = {each.casefold() for each in _cte_names(tree)}
    for name in names:
        if not _NAME.fullmatch(name):  # names with a dot or slash are files, outside of the part where they are queries
            raise Invalid(f"{name[:200]} is not a name for a query", "use letters, digits and underscores")
    names.add(TABLE)
    for node in _nodes(tree):
        _check(node, names)
    return tree


def _check(node: Tree, names: set[str]) -> None:
    kind = node.get("type")
    if not isinstance(kind, str):
        return
    if "class" in node:
        if node["class"] == "FUNCTION" and node["function_name"].casefold() in REFUSED:
            raise Invalid(f"the function {node['function_name']} is not available", "select from the table `readings`")
        if node["class"] == "PARAMETER":
            raise Invalid("the query has a parameter", "write its value into the query")
        return
    if kind.endswith("_TYPE_INFO"):
        return
    if kind not in KINDS:
        raise Invalid(f"{kind.replace('_', ' ')} is not available", f"select from the table `{TABLE}`")
    if kind == "BASE_TABLE" and (
        node["schema_name"] or node["catalog_name"] or node["table_name"].casefold() not in names
    ):
        table = ".".join(filter(None, (node["catalog_name"], node["schema_name"], node["table_name"])))
        raise Invalid(f"there is no table {table[:200]}", f"select from the table `{TABLE}`")
    if kind == "TABLE_FUNCTION" and (name := node["function"]["function_name"]).casefold() not in FUNCTIONS:
        raise Invalid(f"the table function {name[:200]} is not available", f"select from the table `{TABLE}`")


def uses(tree: Tree) -> Uses:
    """Return what a checked statement uses of `data`."""
    used = Uses()
    others: set[Path] = set()
    tables = {str(node["alias"] or node.get("table_name", "")).casefold() for node in _tables(tree)}
    _add(tree, used, others, tables)
    if used.whole:  # `data` may have another name, too
        used.paths |= others
        used.receipts = True
    return used


def _tables(tree: Tree) -> Iterator[Tree]:
    return (node for node in _nodes(tree) if "alias" in node and "sample" in node)


def _add(top: Any, used: Uses, others: set[Path], tables: set[str]) -> None:
    stack = [top]
    while stack:
        node = stack.pop()
        if isinstance(node, list):
            stack += node
        elif isinstance(node, Mapping):
            kind = node.get("class") or node.get("type")
            if names := _extracted(node):
                _add_column([name.casefold() for name in names], names, used, tables)
                others |= {names[place:] for place in (1, 2) if len(names) > place and names[place] not in COLUMNS}
                continue
            if path := json_path(node):
                used.paths.add(path)
                continue  # the other operand is a constant
            columns = [name.casefold() for name in node.get("using_columns") or ()]
            used.receipts |= RECEIVED in columns
            used.every |= (kind == "STAR" and bool(node["relation_name"])) or node.get("function_name") == "unnest"
            used.whole |= (
                kind in ("STAR", "POSITIONAL_REFERENCE", "PIVOT")
                or node.get("ref_type") == "NATURAL"
                or DATA in columns
                or bool(node.get("column_name_alias"))
            )
            stack += node.values()


def _extracted(node: Mapping[str, Any]) -> Path:
    """Return the names in `a.b.c` or `a.b['c']`; empty for others."""
    names = list[str]()
    while (kind := node.get("class")) != "COLUMN_REF":
        name = node.get("type") if kind == "OPERATOR" else str(node.get("function_name", "")).upper()
        children: Sequence[Tree] = node.get("children") or ()
        if name not in ("ARRAY_EXTRACT", "STRUCT_EXTRACT") or len(children) != 2:
            return ()
        text = _text(children[1])
        if text is None:
            return ()
        names.insert(0, text)
        node = children[0]
    return (*node["column_names"], *names)


def _text(node: Mapping[str, Any]) -> str | None:
    """Return a constant text; None for anything else."""
    value = node.get("value") if node.get("class") == "CONSTANT" else None
    text = value.get("value") if isinstance(value, Mapping) and not value["is_null"] else None
    return text if isinstance(text, str) else None


def _add_column(folded: Sequence[str], names: Path, used: Uses, tables: set[str]) -> None:
    used.whole |= len(folded) == 1 and folded[0] in tables  # a whole row
    used.receipts |= RECEIVED in folded
    for place, name in enumerate(folded[:4]):
        if name == DATA:
            if path := names[place + 1 :]:
                used.paths.add(path)
            else:
                used.whole = True


def _operands(node: Mapping[str, Any]) -> Sequence[Tree]:
    """Return the operands of a JSON function or operator; none for others."""
    if node.get("class") == "LAMBDA":  # DuckDB tells x -> y in JSON from a function when it knows the type of x
        return node["lhs"], node["expr"]
    if node.get("class") == "FUNCTION" and _JSON.fullmatch(node["function_name"].casefold()):
        operands: Sequence[Tree] = node["children"]
        return operands
    return ()


def json_path(node: Mapping[str, Any]) -> Path | None:
    """Return the path in a call such as `data ->> '$.readings.celsius'`; None for others."""
    children = _operands(node)
    if len(children) != 2 or not _is_data(children[0]):
        return None
    text = _text(children[1])
    if text is None or text[:2] != "$.":
        return None
    path, place = list[str](), 1
    while match := _STEP.match(text, place):
        path.append(match[1] or match[2])
        place = match.end()
    return tuple(path) if place == len(text) else None


def on_whole(tree: Tree) -> bool:
    """Change JSON functions and casts of `data` to its member WHOLE; return whether anything changed.

    Nothing changes if a table in the statement gives the name `data` to something of its own.
    """
    result = {id(item) for item in tree["node"].get("select_list", ())}  # whose names no function refers to
    if any(DATA in _names_given(node) for node in _nodes(tree) if id(node) not in result):
        return False
    changed = False
    for node in _nodes(tree):
        targets: Sequence[Tree] = _operands(node)[:1]
        if node.get("class") == "CAST" and _cast_name(node["cast_type"]) in _TEXTS:
            targets = (node["child"],)
        for target in targets:
            if _is_data(target):
                target["column_names"].append(WHOLE)
                changed = True
    return changed


def _names_given(node: Tree) -> Iterator[str]:
    yield str(node.get("alias", "")).casefold()
    for each in (*(node.get("aliases") or ()), *(node.get("column_name_alias") or ())):
        yield str(each).casefold()


def table_count(tree: Tree) -> int:
    """Return how often a statement names the table."""
    return sum(node.get("type") == "BASE_TABLE" and node["table_name"].casefold() == TABLE for node in _nodes(tree))


def time_bounds(tree: Tree) -> list[tuple[bool, Tree]]:
    """Return bounds of `time_requested` outside of which a statement needs no reading: whether lower, and expression.

    None unless the statement has the table once, and compares its times before it does anything else with it.
    """
    conditions, table = _conditions(tree)
    return [bound for condition in conditions for bound in _bounds(condition, table)]


def source_conditions(tree: Tree) -> tuple[list[Tree], str]:
    """Return conditions that the sources of all readings must meet, and the name of their table in lower case.

    They compare only columns that are the same for all readings of a source. None as for `time_bounds`.
    """
    conditions, table = _conditions(tree)
    return [condition for condition in conditions if _is_of_sources(condition, table)], table


def _conditions(tree: Tree) -> tuple[list[Tree], str]:
    """Return the conditions that each reading must meet, and the name of the table in lower case."""
    tables = [node for node in _nodes(tree) if node.get("type") == "BASE_TABLE"]
    if sum(each["table_name"].casefold() == TABLE for each in tables) != 1 or TABLE in set(_cte_names(tree)):
        return [], ""
    for node in _nodes(tree):
        table = node.get("from_table") or {}
        if table.get("type") == "BASE_TABLE" and table["table_name"].casefold() == TABLE:
            if table["sample"] or table["column_name_alias"] or not node["where_clause"]:
                break
            return list(_conjuncts(node["where_clause"])), str(table["alias"] or TABLE).casefold()
    return [], ""


def _conjuncts(condition: Tree) -> Iterator[Tree]:
    if condition.get("type") == "CONJUNCTION_AND":
        for child in condition["children"]:
            yield from _conjuncts(child)
    else:
        yield condition


def _is_of_sources(condition: Tree, table: str) -> bool:
    for node in _nodes(condition):
        kind, names = node.get("class"), [name.casefold() for name in node.get("column_names") or ()]
        if kind is not None and kind not in _OF_SOURCES:
            return False
        if kind == "FUNCTION" and str(node["function_name"]).casefold() not in _TEXT_FUNCTIONS:
            return False
        if kind == "COLUMN_REF" and not (names[-1] in COLUMNS[:9] and names[:-1] in ([], [table])):
            return False
    return True


def _bounds(condition: Tree, table: str) -> Iterator[tuple[bool, Tree]]:
    kind = condition.get("type")
    if kind == "COMPARE_BETWEEN" and _is_time(condition["input"], table):
        yield True, condition["lower"]
        yield False, condition["upper"]
    elif kind in _LOWER:
        for column, each, swapped in (("left", "right", False), ("right", "left", True)):
            if _is_time(condition[column], table):
                yield from ((lower != (swapped and kind != _EQUAL), condition[each]) for lower in _LOWER[kind])


def is_fixed(expression: Tree) -> bool:
    """Return whether an expression has the same value for each row, and each time in a transaction."""
    for node in _nodes(expression):
        kind = node.get("class")
        name = str(node.get("function_name", "")).casefold()
        if (kind is not None and kind not in _FIXED) or (kind == "FUNCTION" and not _STEADY.fullmatch(name)):
            return False
    return True


def _is_time(node: Tree, table: str) -> bool:
    names = [name.casefold() for name in node.get("column_names") or ()]
    return names in (["time_requested"], [table, "time_requested"])


def _cast_name(cast: Tree) -> str:
    info = cast.get("type_info") or {}
    return str(info.get("name") or cast.get("id", "")).casefold()


def _is_data(node: Tree) -> bool:
    return node.get("class") == "COLUMN_REF" and node["column_names"][-1].casefold() == DATA


def _nodes(top: Any) -> Iterator[Tree]:
    stack = [top]
    while stack:
        node = stack.pop()
        if isinstance(node, dict):
            yield node
            stack += node.values()
        elif isinstance(node, list):
            stack += node


def _cte_names(tree: Tree) -> Iterator[str]:
    for node in _nodes(tree):
        for entry in (node.get("cte_map") or {}).get("map", ()):
            yield str(entry["key"])
        if node.get("type") in ("RECURSIVE_CTE_NODE", "CTE_NODE"):
            yield str(node.get("cte_name") or node.get("ctename") or "")
