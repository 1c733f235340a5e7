"""Merging of fragments into a configuration. Pure: a function finds the fragments.

`fragments` of a document refers to them: `{"id", "version", "prefix", "variables", "disabled"}`, or just an id.
`fragment_mods` changes their content: `{"fragment_id", "mods": [{"$set": {PATH: VALUE}}, {"$unset": {PATH: ""}}]}`. A
placeholder `{"$variable": {"name": NAME, "default": VALUE}}` can replace any value. In the following order, each takes
precedence over those before: nested fragments, the fragment, its mods, the document itself. Entries with a name are
replaced as a whole; objects are merged; lists without names (`log`) are joined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from cloud.documents.merge import merge, name_of
from cloud.documents.paths import changed
from schema import MachineError

NESTING: Final = 5
"""Maximum depth of fragments inside fragments; a published limit."""

MAX_USES: Final = 1000
"""Maximum number of fragments merged into one document, counting repetitions: nested fragments multiply."""
MAX_VALUES: Final = 100_000
"""Maximum number of values in fragments, after variables are replaced. A text counts as one for each 32 characters."""
MAX_MODS: Final = 1000
MAX_PREFIX: Final = 100
_LIMIT_EXCEEDED: Final = f"more than {MAX_USES} fragments or {MAX_VALUES} values would be merged in total"
_MAX_ID: Final = 100  # characters; ids of fragments are shorter

_FRAGMENT_KEYS: Final = frozenset({"fragments", "fragment_mods"})

_KEYS: Final[Mapping[str, tuple[type, str]]] = {
    "id": (str, "a string"),
    "version": (str, "a string"),
    "prefix": (str, "a string"),
    "variables": (Mapping, "an object"),
    "disabled": (bool, "true or false"),
}
"""Keys of an entry of `fragments`, with the type of their values and its name in error messages."""


class FragmentProblemKind(IntEnum):
    """Kinds of problems, with the numbers of the published FragmentErrorType."""

    MISTAKE = 0
    NO_ACCESS = 1
    NESTING = 2
    CHILD_ID_INVALID = 3
    CYCLE = 4


@dataclass(frozen=True, slots=True)
class FragmentProblem:
    """A problem in merging. `path` is the position in the document that was resolved."""

    kind: FragmentProblemKind
    fragment: str
    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


@dataclass(frozen=True, slots=True)
class Fragment:
    """One revision of a fragment."""

    id: str
    revision: int
    document: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Use:
    """One entry of `fragments`."""

    id: str
    version: str = ""  # a revision or a tag; "" for the newest revision
    prefix: str = ""
    variables: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Resolved:
    """A merged document, without `fragments` and `fragment_mods`.

    `used` are all merged fragments, including nested ones.
    """

    document: Mapping[str, Any]
    problems: tuple[FragmentProblem, ...] = ()
    used: tuple[Fragment, ...] = ()


Find = Callable[[str, str], Fragment | None]
"""Function that returns the fragment with an id and version; None if it does not exist or may not be used."""


def resolve(document: Mapping[str, Any], find: Find) -> Resolved:
    """Merge the fragments of a document. Each one that cannot be merged is left out and gives a Problem."""
    if not _FRAGMENT_KEYS & document.keys():
        return Resolved(document)
    resolution = _Resolution(find)
    merged = resolution.expand(document, (), "")
    unique = {(fragment.id, fragment.revision): fragment for fragment in resolution.used}
    return Resolved(merged, tuple(resolution.problems), tuple(unique.values()))


def uses(document: Mapping[str, Any]) -> set[str]:
    """Return the ids of the fragments that a document uses directly, including disabled ones."""
    listed = entries(document, "fragments")
    ids = (entry.get("id") if isinstance(entry, Mapping) else entry for entry in listed)
    return {fragment_id for fragment_id in ids if isinstance(fragment_id, str) and len(fragment_id) <= _MAX_ID}


class _Resolution:
    def __init__(self, find: Find) -> None:
        self._find = find
        self.problems: list[FragmentProblem] = []
        self.used: list[Fragment] = []
        self._values = 0  # values from fragments so far
        self._mods = 0

    def expand(self, document: Mapping[str, Any], chain: tuple[str, ...], where: str) -> dict[str, Any]:
        """Return `document` with its fragments merged in; `chain` are the fragments that contain it."""
        contents: list[dict[str, Any]] = []
        prefixes: dict[str, set[str]] = {}  # prefixes by fragment
        for index, entry in enumerate(entries(document, "fragments")):
            path = f"{where}fragments.{index}"
            use = self._use(entry, path)
            if use is None:
                continue
            if use.prefix in prefixes.get(use.id, ()):
                self._report(
                    FragmentProblemKind.MISTAKE,
                    use.id,
                    path,
                    "a fragment that is used twice needs a different `prefix` for each use",
                )
                continue
            content = self._child(use, chain, path)
            if content is not None:
                prefixes.setdefault(use.id, set()).add(use.prefix)
                contents.append(content)
        base = self._modified(merge(*contents), document, prefixes, where)
        return merge(base, {key: value for key, value in document.items() if key not in _FRAGMENT_KEYS})

    def _use(self, entry: Any, path: str) -> Use | None:
        if isinstance(entry, str):
            return Use(entry)
        if not isinstance(entry, Mapping) or not isinstance(entry.get("id"), str):
            self._report(
                FragmentProblemKind.CHILD_ID_INVALID, "", path, 'an entry must be an id, or an object with "id"'
            )
            return None
        for key, (kind, expected) in _KEYS.items():
            if entry.get(key) is not None and not isinstance(entry[key], kind):
                text = f"{entry[key]!r} is not valid: expected {expected}"
                self._report(FragmentProblemKind.MISTAKE, entry["id"], f"{path}.{key}", text)
                return None
        if len(entry.get("prefix") or "") > MAX_PREFIX:
            self._report(
                FragmentProblemKind.MISTAKE,
                entry["id"],
                f"{path}.prefix",
                f"must not be longer than {MAX_PREFIX} characters",
            )
            return None
        if entry.get("disabled"):
            return None
        return Use(entry["id"], entry.get("version") or "", entry.get("prefix") or "", entry.get("variables"))

    def _child(self, use: Use, chain: tuple[str, ...], path: str) -> dict[str, Any] | None:
        if use.id in chain:
            self._report(
                FragmentProblemKind.CYCLE, use.id, path, f"the fragment contains itself: {' > '.join((*chain, use.id))}"
            )
            return None
        if len(chain) >= NESTING:
            self._report(
                FragmentProblemKind.NESTING, use.id, path, f"fragments are nested more than {NESTING} levels deep"
            )
            return None
        if len(self.used) >= MAX_USES or self._values > MAX_VALUES:
            self._report(FragmentProblemKind.NESTING, use.id, path, _LIMIT_EXCEEDED)
            return None
        fragment = self._find(use.id, use.version)
        if fragment is None:
            version = f" in version {use.version[:80]!r}" if use.version else ""
            self._report(FragmentProblemKind.NO_ACCESS, use.id, path, f"there is no fragment {use.id[:80]!r}{version}")
            return None
        try:
            document = self._filled(fragment.document, use, path)
        except _LimitExceededError:
            self._report(FragmentProblemKind.NESTING, use.id, path, _LIMIT_EXCEEDED)
            return None
        self.used.append(fragment)
        content = self.expand(document, (*chain, use.id), f"{path} > ")
        return prefixed(content, use.prefix) if use.prefix else content

    # ---- variables

    def _filled(self, document: Mapping[str, Any], use: Use, path: str) -> Mapping[str, Any]:
        variables, used_names = dict(use.variables or {}), set[str]()
        sizes = {name: _size(value) for name, value in variables.items()}

        def spend(values: int) -> None:
            self._values += values
            if self._values > MAX_VALUES:
                raise _LimitExceededError

        def fill(value: Any) -> Any:
            spend(_size(value, inside=False))
            if isinstance(value, Mapping):
                if value.keys() == {"$variable"}:
                    return variable(value["$variable"])
                filled = {key: fill(item) for key, item in value.items()}
                return {key: item for key, item in filled.items() if item is not _ABSENT}
            if isinstance(value, list):
                return [item for item in map(fill, value) if item is not _ABSENT]
            return value

        def variable(placeholder: Any) -> Any:
            if not isinstance(placeholder, Mapping) or not isinstance(placeholder.get("name"), str):
                self._report(
                    FragmentProblemKind.MISTAKE, use.id, path, 'a placeholder must be {"$variable": {"name": NAME}}'
                )
                return _ABSENT
            used_names.add(placeholder["name"])
            if placeholder["name"] in variables:
                spend(sizes[placeholder["name"]])
                return variables[placeholder["name"]]
            for key in ("default", "default_value"):
                if key in placeholder:
                    spend(_size(placeholder[key]))
                    return placeholder[key]
            self._report(
                FragmentProblemKind.MISTAKE,
                use.id,
                f"{path}.variables",
                f"the variable {placeholder['name']!r} has neither value nor default",
            )
            return _ABSENT

        result: Mapping[str, Any] = fill(document)
        for name in sorted(variables.keys() - used_names):
            self._report(
                FragmentProblemKind.MISTAKE, use.id, f"{path}.variables.{name}", "the fragment has no such variable"
            )
        return result

    # ---- mods

    def _modified(
        self, base: dict[str, Any], document: Mapping[str, Any], prefixes: Mapping[str, set[str]], where: str
    ) -> dict[str, Any]:
        for index, entry in enumerate(entries(document, "fragment_mods")):
            path = f"{where}fragment_mods.{index}"
            fragment_id = entry.get("fragment_id") if isinstance(entry, Mapping) else None
            if not isinstance(fragment_id, str) or fragment_id not in prefixes:
                self._report(
                    FragmentProblemKind.MISTAKE,
                    str(fragment_id or ""),
                    f"{path}.fragment_id",
                    "is not the id of a fragment that this document uses",
                )
                continue
            for number, mod in enumerate(entries(entry, "mods")):
                self._mods += 1
                if self._mods > MAX_MODS:
                    self._report(
                        FragmentProblemKind.MISTAKE, fragment_id, f"{path}.mods", f"there are more than {MAX_MODS} mods"
                    )
                    return base
                base = self._mod(base, mod, fragment_id, f"{path}.mods.{number}")
        return base

    def _mod(self, base: dict[str, Any], mod: Any, fragment_id: str, path: str) -> dict[str, Any]:
        if not isinstance(mod, Mapping) or not mod or mod.keys() - {"$set", "$unset"}:
            self._report(
                FragmentProblemKind.MISTAKE,
                fragment_id,
                path,
                'a mod must be {"$set": {PATH: VALUE}} or {"$unset": {PATH: ""}}',
            )
            return base
        for operator, changes in mod.items():
            if not isinstance(changes, Mapping):
                self._report(
                    FragmentProblemKind.MISTAKE,
                    fragment_id,
                    f"{path}.{operator}",
                    "must be an object with paths as keys",
                )
                continue
            for target, value in changes.items():
                try:
                    base = changed(base, target, value if operator == "$set" else None)
                except MachineError as error:
                    self._report(FragmentProblemKind.MISTAKE, fragment_id, f"{path}.{operator}", str(error))
        return base

    def _report(self, kind: FragmentProblemKind, fragment: str, path: str, text: str) -> None:
        self.problems.append(FragmentProblem(kind, fragment, path, text))


_ABSENT: Final = object()


class _LimitExceededError(Exception):
    """The limit MAX_VALUES is exceeded."""


def _size(value: Any, *, inside: bool = True) -> int:
    """Count values as MAX_VALUES does; with `inside`, including those in objects and lists."""
    count, remaining = 0, [value]
    while remaining:
        current = remaining.pop()
        texts = (current,) if isinstance(current, str) else current if isinstance(current, Mapping) else ()
        count += 1 + sum(map(len, texts)) // 32
        if inside and isinstance(current, Mapping):
            remaining += current.values()
        elif inside and isinstance(current, list):
            remaining += current
    return count


def entries(document: Mapping[str, Any], key: str) -> Iterable[Any]:
    """Return the entries of a section; empty if it is not a list."""
    section = document.get(key)
    return section if isinstance(section, list) else ()


# ---- prefixes

_RESOURCES: Final = ("components", "services", "remotes", "jobs", "triggers")
"""Sections where a prefix changes names. Modules and packages are the same program with any prefix."""


def prefixed(document: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    """Add `prefix-` to every name, and to every reference to one of these names.

    A reference is a text that equals the name, or a full name that ends with it.
    """
    names = {
        name for section in _RESOURCES for entry in entries(document, section) if (name := name_of(entry)) is not None
    }

    def renamed(value: Any) -> Any:
        if isinstance(value, str):
            head, slash, last = value.rpartition("/")
            if value in names:
                return f"{prefix}-{value}"
            return f"{head}/{prefix}-{last}" if slash and last in names and head.count(":") == 2 else value
        if isinstance(value, Mapping):
            return {key: renamed(item) for key, item in value.items()}
        return [renamed(item) for item in value] if isinstance(value, list) else value

    def entry(resource: Any) -> Any:
        if not isinstance(resource, Mapping):
            return resource
        fixed = {"api", "model", "type", "namespace", "method"}  # fixed words, which may also be names of resources
        return {key: value if key in fixed else renamed(value) for key, value in resource.items()}

    return {
        key: [entry(item) for item in value]
        if key in _RESOURCES and isinstance(value, list)
        else renamed(value)
        if key == "maintenance"
        else value
        for key, value in document.items()
    }


def version_of(revision: int, resolved: Resolved) -> str:
    """Return the version of a merged configuration, composed of its own revision and those of the fragments."""
    if not resolved.used:
        return str(revision)
    parts = ".".join(
        f"{fragment.id[:8]}-{fragment.revision}"
        for fragment in sorted(resolved.used, key=lambda fragment: (fragment.id, fragment.revision))
    )
    return f"{revision}+{parts}"
