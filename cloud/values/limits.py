"""Limits of what a tenant may send to this cloud or store in it. docs/reference/limits.md is generated from them.

To add a row: give `LIMITS` a `Limit` with a module-level name and call its `check` (or `check_count`) where the input
arrives, or, for a limit that another module enforces, add a line to `ELSEWHERE` that says where its value is. Then run
`make generate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from schema.decoding import depth
from schema.errors import ErrorKind, MachineError

KIB: Final = 1024
MIB: Final = 1024 * KIB


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit: at most `value` of `unit`. `of` completes the sentence "at most N UNIT ..."."""

    name: str
    value: int
    unit: str
    of: str
    remedy: str
    kind: ErrorKind = ErrorKind.INVALID

    def check(self, size: int, what: str) -> None:
        """Raise MachineError (`kind`) if `size` exceeds the limit; `what` is the subject: "the configuration"."""
        if size > self.value:
            raise MachineError(
                f"{what} has {size:,} {self.unit}, more than the limit `{self.name}` of {self.value:,} {self.unit}",
                kind=self.kind,
                remedy=self.remedy,
            )

    def check_count(self, count: int, what: str) -> None:
        """Raise MachineError (`kind`) if no item can be added to the `count` existing ones; see `check`."""
        if count >= self.value:
            raise MachineError(
                f"{what} has {count:,} {self.unit} already; the limit `{self.name}` is {self.value:,}",
                kind=self.kind,
                remedy=self.remedy,
            )


def _count(name: str, value: int, unit: str, of: str, remedy: str) -> Limit:
    return Limit(name, value, unit, of, remedy, ErrorKind.EXHAUSTED)


# ---- documents

DOCUMENT: Final = Limit(
    "document",
    4 * MIB,
    "bytes",
    "of JSON in one configuration or fragment, as sent and as stored; also after its fragments were merged",
    "split it into fragments or machines, and keep data such as maps or models in a package",
)
DOCUMENT_VALUES: Final = Limit(
    "document_values",
    40_000,  # 2,000 resources of 20 values; processing more would delay other organizations
    "values",
    "in one configuration, fragment or metadata: texts, numbers, lists and objects at any depth",
    "move long lists of numbers into a package or a file that the module reads",
)
DOCUMENT_DEPTH: Final = Limit(
    "document_depth",
    depth.MAX_DEPTH,
    "levels",
    "of objects and lists inside each other",
    depth.REMEDY,
)
SECTION: Final = Limit(
    "section",
    2000,
    "entries",
    "in each of components, services, modules, remotes, packages, jobs, processes, fragments and fragment_mods",
    "spread the resources over several machines",
)
HISTORY: Final = Limit(
    "history",
    8 * MIB,
    "bytes",
    "of documents on one page of a history, plus 64 for each value; a page has at least one entry",
    "ask for the next page",
)
METADATA: Final = Limit(
    "metadata",
    256 * KIB,
    "bytes",
    "of JSON in the metadata of one organization, location, machine or part",
    "keep large things in a dataset or a package, and their ids in the metadata",
)
FORM: Final = Limit(
    "form",
    4 * MIB,
    "bytes",
    "in one form of a page, encoded as browsers send it",
    "send less at once",
)
DOCUMENT_FORM: Final = Limit(
    "document_form",
    12 * MIB,
    "bytes",
    "in one form or request of the editor, where encoding can triple the size of a document",
    "save a document of this size with `machine` or the API",
)
CALL: Final = Limit(
    "call",
    8 * MIB,
    "bytes",
    "in one message of a call that uploads no file; uploads have the limit of --max-message",
    "send less in one call",
)

# ---- names

NAME: Final = Limit(
    "name",
    200,
    "characters",
    "in the name of an organization, location, machine, part, key, fragment or dataset",
    "choose a shorter one",
)

# ---- how many

LOCATIONS: Final = _count("locations", 10_000, "locations", "in one organization", "delete locations that are not used")
MACHINES: Final = _count("machines", 50_000, "machines", "in one location", "use another location")
PARTS: Final = _count("parts", 100, "parts", "of one machine", "create another machine")
PART_SECRETS: Final = _count(
    "part_secrets", 10, "secrets", "of one part", "delete the ones that no machine uses any more"
)
KEYS: Final = _count("keys", 50_000, "keys", "of one organization", "delete unused keys")
GRANTS: Final = _count(
    "grants", 1000, "roles", "of one key", "give the key a role at the location or organization above"
)
FRAGMENTS: Final = _count("fragments", 5000, "fragments", "in one organization", "delete fragments that nothing uses")
FRAGMENT_TAGS: Final = _count("fragment_tags", 500, "tags", "of one fragment", "delete tags that nothing is pinned to")
REGISTRY_ITEMS: Final = _count(
    "registry_items", 2000, "entries", "in the registry for one organization", "delete unused modules"
)
REGISTRY_VERSIONS: Final = _count(
    "registry_versions", 10_000, "files", "of one registry entry: each platform of each version", "create another entry"
)
DATASETS: Final = _count("datasets", 10_000, "datasets", "in one organization", "delete unused datasets")
UPLOAD_READINGS: Final = Limit(
    "upload_readings",
    50_000,
    "readings",
    "or contents of files in one upload of captured data",
    "send them in several uploads",
)
LABELS: Final = _count("labels", 1000, "labels", "of one file", "remove labels from the file")

# ---- SQL queries

SQL_TEXT: Final = Limit("sql_text", 64 * KIB, "bytes", "in one SQL query", "write a shorter query")
SQL_QUEUE: Final = _count(
    "sql_queue", 8, "queries", "of one organization that wait for their turn", "try again when others have finished"
)

# ---- work for pages and documents

WORK_QUEUE: Final = _count(
    "work_queue", 64, "requests", "of one organization that wait for large pages or documents", "try again later"
)

LIMITS: Final = (
    DOCUMENT,
    DOCUMENT_VALUES,
    DOCUMENT_DEPTH,
    SECTION,
    HISTORY,
    METADATA,
    UPLOAD_READINGS,
    FORM,
    DOCUMENT_FORM,
    CALL,
    NAME,
    LOCATIONS,
    MACHINES,
    PARTS,
    PART_SECRETS,
    KEYS,
    GRANTS,
    FRAGMENTS,
    FRAGMENT_TAGS,
    REGISTRY_ITEMS,
    REGISTRY_VERSIONS,
    DATASETS,
    LABELS,
    SQL_TEXT,
    SQL_QUEUE,
    WORK_QUEUE,
)
"""In the order of the generated page."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A limit that another module enforces. `where` is `module:NAME`, or `module:Class.field` of a class of limits."""

    where: str
    unit: str
    of: str


ELSEWHERE: Final[dict[str, tuple[Elsewhere, ...]]] = {
    "Connections and calls": (
        Elsewhere("rpc.limits:Limits.max_connections", "connections", "of one server"),
        Elsewhere("rpc.http.limits:HttpLimits.max_per_address", "connections", "from one address (machine-server)"),
        Elsewhere(
            "rpc.limits:Limits.authentication_timeout", "seconds", "from connecting to the first authenticated call"
        ),
        Elsewhere("rpc.limits:Limits.max_streams", "calls", "at once on one connection"),
        Elsewhere("rpc.limits:Limits.max_message", "bytes", "in one gRPC message, compressed or not (default)"),
        Elsewhere("rpc.parsing:MAX_STRUCTURE", "bytes", "in one gRPC message, without values of 4 KiB or more"),
        Elsewhere("rpc.parsing:MAX_ENTRIES", "entries", "in one map or object of a gRPC message of more than 64 KiB"),
        Elsewhere("rpc.limits:MAX_UNAUTHENTICATED", "bytes", "in a message of a client that has not signed in"),
        Elsewhere("rpc.limits:Limits.max_buffered", "bytes", "received and not yet read on one connection (default)"),
        Elsewhere("rpc.limits:Limits.max_header_list", "bytes", "in the headers of one request over HTTP/2"),
        Elsewhere(
            "rpc.limits:Limits.max_header_block",
            "bytes",
            "in these headers as sent; exceeding it ends the connection, not only the request",
        ),
        Elsewhere("rpc.limits:Limits.max_continuations", "frames", "of headers after the first frame"),
        Elsewhere("rpc.limits:Limits.handshake_timeout", "seconds", "from connecting to the first request"),
        Elsewhere("rpc.limits:Limits.write_stall", "seconds", "that a client may go without reading"),
        Elsewhere("rpc.http.limits:HttpLimits.max_head", "bytes", "in the head of one request over HTTP/1.1"),
        Elsewhere("rpc.http.limits:HttpLimits.max_target", "bytes", "in the address of one request over HTTP/1.1"),
        Elsewhere("rpc.http.limits:HttpLimits.max_fields", "fields", "in the head of one request over HTTP/1.1"),
        Elsewhere("rpc.http.limits:HttpLimits.max_body", "bytes", "in one request to a page of a machine"),
        Elsewhere("rpc.http.limits:HttpLimits.max_websocket_message", "bytes", "in one message of a WebSocket"),
        Elsewhere("rpc.access.tokens:MAX_TOKEN", "bytes", "in an access token"),
        Elsewhere("rpc.access.auth:MAX_CREDENTIAL", "characters", "in the id or the secret of credentials"),
        Elsewhere(
            "rpc.access.attempts:FAILURES", "failures", "to sign in with one id from one address within a minute"
        ),
        Elsewhere("rpc.access.attempts:ADDRESS_FAILURES", "failures", "to sign in from one address within a minute"),
        Elsewhere(
            "rpc.parsing:MAX_DEPTH", "levels", "of messages inside each other; an object inside another takes three"
        ),
        Elsewhere("rpc.api.gateway:MAX_BODY", "bytes", "in the body of one call by HTTP and JSON"),
        Elsewhere("rpc.api.gateway:MAX_REPLY", "bytes", "in its reply, without images and files"),
        Elsewhere("cloud.work.openings:STREAMS", "responses and live pages", "open for one key at the same time"),
        Elsewhere("cloud.work.openings:FOLLOWERS", "push channels", "of one part"),
        Elsewhere(
            "cloud.work.shares:SHARE",
            "processors",
            "for the long calls of one organization in each group of threads, while several organizations are active",
        ),
        Elsewhere("cloud.work.shares:BURST", "seconds", "of processor time that it may use before that limit applies"),
    ),
    "Configurations and fragments": (
        Elsewhere("cloud.documents.resolve:NESTING", "levels", "of fragments inside fragments"),
        Elsewhere(
            "cloud.documents.resolve:MAX_USES", "fragments", "merged into one configuration, nested ones included"
        ),
        Elsewhere("cloud.documents.resolve:MAX_VALUES", "values", "that fragments add to one configuration"),
        Elsewhere("cloud.documents.resolve:MAX_MODS", "mods", "of fragments in one configuration"),
        Elsewhere(
            "cloud.services.configurations.configurations:MAX_CHANGES", "changes", "in one SetConfigProperty call"
        ),
        Elsewhere("schema.names:MAX_RESOURCE_NAME", "characters", "in the name of a resource"),
    ),
    "Sharing and people": (
        Elsewhere("cloud.domain.organizations.sharing:MAX_SECRETS", "secrets", "of one location"),
        Elsewhere("cloud.domain.people.invites:MOST", "invitations", "of one organization that are open"),
    ),
    "Registry": (
        Elsewhere("cloud.domain.registry.items:MAX_NAME", "characters", "in the name of an entry"),
        Elsewhere(
            "cloud.domain.registry.items:MAX_TEXT", "characters", "in a description, and in the metadata of an entry"
        ),
        Elsewhere("cloud.domain.registry.versions:MAX_TAGS", "tags", "of one platform"),
        Elsewhere("cloud.services.common.base:Sizes.package", "bytes", "in one package or module (default)"),
        Elsewhere("runtime.programs.archive:MAX_MEMBERS", "files", "in a module's archive"),
        Elsewhere("runtime.programs.archive:MAX_BYTES", "bytes", "in a module's archive once unpacked"),
    ),
    "Data": (
        Elsewhere("cloud.services.common.base:Sizes.file", "bytes", "in one uploaded file (default)"),
        Elsewhere("cloud.domain.data.sources:MAX_TAGS", "tags", "of one upload"),
        Elsewhere("cloud.domain.data.sources:MAX_TEXT", "characters", "in a tag, a component's name or a method"),
        Elsewhere("cloud.domain.data.filters:MAX_VALUES", "values", "in one field of a filter"),
        Elsewhere("cloud.domain.data.pages:MAX_PAGE", "entries", "on one page of an answer"),
        Elsewhere("cloud.domain.data.table:MAX_COLUMNS", "columns", "of values in an export"),
        Elsewhere("cloud.domain.queries.query:MAX_READINGS", "readings", "that one SQL query can read"),
        Elsewhere("cloud.domain.queries.query:MAX_ROWS", "rows", "in the result of one SQL query"),
        Elsewhere("cloud.domain.queries.query:MAX_BYTES", "bytes", "in the result of one SQL query"),
    ),
    "Triggers": (
        Elsewhere("triggers.document:MAX_TARGETS", "targets", "of one trigger"),
        Elsewhere("triggers.document:MAX_NAME", "characters", "in the name of a trigger"),
        Elsewhere("triggers.regex:MAX_PATTERN", "characters", "in a pattern"),
        Elsewhere("triggers.regex:MAX_STEPS", "steps", "of one search with a pattern"),
        Elsewhere("triggers.ssrf:MAX_URL", "characters", "in the address of a webhook"),
    ),
    "Logs": (
        Elsewhere("cloud.domain.machines.logs:MAX_BATCH", "entries", "in one call"),
        Elsewhere("cloud.domain.machines.logs:MAX_TEXT", "characters", "in a message or stack; the rest is cut off"),
    ),
}
"""By section of the generated page."""
