"""Limits of what a tenant may send to this cloud or store in it. docs/reference/limits.md is generated from them.

To add a row: give `LIMITS` a `Limit` with a module-level name and call its `check` (or `check_count`) where the input
arrives, or, for a limit that another module enforces, add a line to `ENFORCED_ELSEWHERE` that says where its value is.
Then run `make generate`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from schema import ErrorKind, MachineError
from schema.data import MAX_ANNOTATIONS
from schema.decoding import DEPTH_REMEDY, MAX_DEPTH

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


def _count_limit(name: str, value: int, unit: str, of: str, remedy: str) -> Limit:
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
    MAX_DEPTH,
    "levels",
    "of objects and lists inside each other",
    DEPTH_REMEDY,
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
ANNOTATIONS: Final = Limit(
    "annotations",
    1 * MIB,
    "bytes",
    "in one request of the labelling page",
    "use fewer boxes for one picture",
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
    "in the name of an organization, location, machine, part, key, fragment, dataset or saved query",
    "choose a shorter one",
)

TAG: Final = Limit("tag", 100, "characters", "in one tag of a machine", "choose a shorter one")

# ---- how many

LOCATIONS: Final = _count_limit(
    "locations", 10_000, "locations", "in one organization", "delete locations that are not used"
)
FLEET_JOB_MACHINES: Final = Limit(
    "fleet_job_machines", 10_000, "machines", "in one bulk job", "select fewer, for example one location at a time"
)
FLEET_WORK: Final = Limit(
    "fleet_work", 64 * KIB, "bytes", "in the work of one bulk job, as JSON", "put large values into a fragment"
)
FLEET_WORDS: Final = Limit("fleet_words", 10, "words and tags", "in one search of machines", "search for fewer")
FLEET_JOBS: Final = _count_limit(
    "fleet_jobs", 100, "bulk jobs", "of one organization that are kept; the oldest ended ones are deleted", "wait"
)
FLEET_QUEUE: Final = _count_limit(
    "fleet_queue", 10, "running bulk jobs", "of one organization", "wait until one has ended, or stop one"
)
FLEET_VIEWS: Final = _count_limit(
    "fleet_views", 100, "saved views", "of one key, and as many that one organization shares", "delete unused views"
)
FLEET_QUERY: Final = Limit("fleet_query", 2000, "characters", "in the query of one saved view", "use fewer conditions")
MACHINES: Final = _count_limit("machines", 50_000, "machines", "in one location", "use another location")
MACHINE_TAGS: Final = _count_limit("machine_tags", 50, "tags", "of one machine", "remove tags that are not used")
PARTS: Final = _count_limit("parts", 100, "parts", "of one machine", "create another machine")
PART_SECRETS: Final = _count_limit(
    "part_secrets", 10, "secrets", "of one part", "delete the ones that no machine uses any more"
)
KEYS: Final = _count_limit("keys", 50_000, "keys", "of one organization", "delete unused keys")
GRANTS: Final = _count_limit(
    "grants", 1000, "roles", "of one key", "give the key a role at the location or organization above"
)
FRAGMENTS: Final = _count_limit(
    "fragments", 5000, "fragments", "in one organization", "delete fragments that nothing uses"
)
FRAGMENT_TAGS: Final = _count_limit(
    "fragment_tags", 500, "tags", "of one fragment", "delete tags that nothing is pinned to"
)
REGISTRY_ITEMS: Final = _count_limit(
    "registry_items", 2000, "entries", "in the registry for one organization", "delete unused modules"
)
REGISTRY_VERSIONS: Final = _count_limit(
    "registry_versions", 10_000, "files", "of one registry entry: each platform of each version", "create another entry"
)
DATASETS: Final = _count_limit("datasets", 10_000, "datasets", "in one organization", "delete unused datasets")
UPLOAD_READINGS: Final = Limit(
    "upload_readings",
    50_000,
    "readings",
    "or contents of files in one upload of captured data",
    "send them in several uploads",
)
RELEASE_FILES: Final = _count_limit(
    "release_files", 1000, "files", "of releases in one organization", "withdraw old versions, and wait a day"
)
ROLLOUTS: Final = _count_limit("rollouts", 1000, "rollouts", "of one program", "withdraw old versions")
OPEN_ROLLOUTS: Final = _count_limit(
    "open_rollouts", 50, "open rollouts", "of one organization", "finish one, or go back"
)
KEPT_ROLLOUTS: Final = _count_limit(
    "kept_rollouts", 100, "rollouts", "of one organization that are kept; the oldest ended ones are deleted", "wait"
)
ROLLOUT_STAGES: Final = Limit("rollout_stages", 20, "stages", "of one rollout", "join some of them")
ROLLOUT_MACHINES: Final = Limit(
    "rollout_machines", 10_000, "machines", "in one rollout", "select fewer, for example one location at a time"
)
AGENT_REPORT: Final = Limit("agent_report", 64 * KIB, "bytes", "in one report of an agent", "send less at once")
LABELS: Final = _count_limit("labels", MAX_ANNOTATIONS, "labels", "of one file", "remove labels from the file")

# ---- connections to machines

SDP: Final = Limit("session_description", 64 * KIB, "characters", "in one session description", "offer less media")
SIGNAL: Final = Limit("signal", 4 * KIB, "characters", "in one candidate or error", "send less at once")
CALLER_OFFERS: Final = _count_limit("caller_offers", 16, "open offers", "of one key to one machine", "try again later")
OFFERS: Final = _count_limit("offers", 64, "open offers", "of all clients to one machine", "try again later")
SIGNALS: Final = _count_limit(
    "signals", 200, "messages", "from one end to the other while they connect", "connect again"
)

# ---- training

TRAINING_JOBS: Final = _count_limit(
    "training_jobs", 2000, "training jobs", "of one organization, finished ones included", "delete finished jobs"
)
TRAINING_QUEUE: Final = _count_limit(
    "training_queue", 100, "unfinished training jobs", "of one organization", "wait until some have ended"
)
TRAINING_TARGETS: Final = _count_limit(
    "training_notifications", 20, "notifications", "about the training jobs of one organization", "remove some"
)
TRAINING_PICTURES: Final = Limit(
    "training_pictures", 20_000, "files", "in the dataset of one training job", "train from a smaller dataset"
)
TRAINING_BYTES: Final = Limit(
    "training_bytes",
    8 * KIB * MIB,
    "bytes",
    "of pictures in the dataset of one training job",
    "train from fewer pictures",
)
TRAINING_LABELS: Final = Limit("training_labels", 500, "labels", "of one model", "train with fewer labels")
TRAINING_ARGUMENTS: Final = Limit(
    "training_arguments", 16 * KIB, "characters", "in the arguments of one training script", "pass shorter arguments"
)

# ---- alerts

ALERT_RULES: Final = _count_limit(
    "alert_rules", 100, "rules of alerts", "of one organization, changed built-in rules included", "delete some"
)
ALERT_SCOPE: Final = Limit(
    "alert_scope", 200, "entries", "in each of the machines, locations and tags of one rule of alerts", "use tags"
)
ALERT_TARGETS: Final = Limit(
    "alert_targets", 20, "targets", "of one rule of alerts, and of the organization for all rules", "remove some"
)
ALERT_MESSAGE: Final = Limit("alert_message", 500, "characters", "in the message of a rule of alerts", "shorten it")
ALERT_SILENCES: Final = _count_limit(
    "alert_silences", 200, "silences", "of rules and machines in one organization", "end some, or switch the rule off"
)
ALERTS: Final = _count_limit(
    "alerts", 5000, "alerts", "of one organization that fire at the same time", "select fewer machines"
)
PART_ALERTS: Final = _count_limit(
    "part_alerts", 250, "alerts", "of one part of a machine, states without an alert included", "use fewer components"
)
ALERT_EVENTS: Final = _count_limit(
    "alert_events", 20_000, "events", "kept in the history of alerts of one organization", "the oldest are deleted"
)

# ---- SQL queries

SQL_TEXT: Final = Limit("sql_text", 64 * KIB, "bytes", "in one SQL query", "write a shorter query")
SQL_QUEUE: Final = _count_limit(
    "sql_queue", 8, "queries", "of one organization that wait for their turn", "try again when others have finished"
)

SQL_FORM: Final = Limit(
    "sql_form",
    256 * KIB,
    "bytes",
    "in one form or request of the page SQL, where encoding can triple the size of a query",
    "write a shorter query",
)
SAVED_QUERIES: Final = _count_limit(
    "saved_queries", 1000, "saved queries", "of one organization", "delete queries that are not used"
)

# ---- work for pages and documents

WORK_QUEUE: Final = _count_limit(
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
    ANNOTATIONS,
    CALL,
    NAME,
    TAG,
    LOCATIONS,
    MACHINES,
    MACHINE_TAGS,
    FLEET_JOB_MACHINES,
    FLEET_WORK,
    FLEET_WORDS,
    FLEET_JOBS,
    FLEET_QUEUE,
    FLEET_VIEWS,
    FLEET_QUERY,
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
    RELEASE_FILES,
    ROLLOUTS,
    OPEN_ROLLOUTS,
    KEPT_ROLLOUTS,
    ROLLOUT_STAGES,
    ROLLOUT_MACHINES,
    AGENT_REPORT,
    SDP,
    SIGNAL,
    CALLER_OFFERS,
    OFFERS,
    SIGNALS,
    TRAINING_JOBS,
    TRAINING_QUEUE,
    TRAINING_TARGETS,
    TRAINING_PICTURES,
    TRAINING_BYTES,
    TRAINING_LABELS,
    TRAINING_ARGUMENTS,
    ALERT_RULES,
    ALERT_SCOPE,
    ALERT_TARGETS,
    ALERT_MESSAGE,
    ALERT_SILENCES,
    ALERTS,
    PART_ALERTS,
    ALERT_EVENTS,
    SQL_TEXT,
    SQL_QUEUE,
    SQL_FORM,
    SAVED_QUERIES,
    WORK_QUEUE,
)
"""In the order of the generated page."""


@dataclass(frozen=True, slots=True)
class EnforcedElsewhere:
    """A limit that another module enforces. `where` is `module:NAME`, or `module:Class.field` of a class of limits."""

    where: str
    unit: str
    of: str


ENFORCED_ELSEWHERE: Final[dict[str, tuple[EnforcedElsewhere, ...]]] = {
    "Connections and calls": (
        EnforcedElsewhere("rpc.limits:Limits.max_connections", "connections", "of one server"),
        EnforcedElsewhere(
            "rpc.http.limits:HttpLimits.max_per_address", "connections", "from one address (machine-server)"
        ),
        EnforcedElsewhere(
            "rpc.limits:Limits.authentication_timeout", "seconds", "from connecting to the first authenticated call"
        ),
        EnforcedElsewhere("rpc.limits:Limits.max_streams", "calls", "at once on one connection"),
        EnforcedElsewhere("rpc.limits:Limits.max_message", "bytes", "in one gRPC message, compressed or not (default)"),
        EnforcedElsewhere("rpc.parsing:MAX_STRUCTURE", "bytes", "in one gRPC message, without values of 4 KiB or more"),
        EnforcedElsewhere(
            "rpc.parsing:MAX_ENTRIES", "entries", "in one map or object of a gRPC message of more than 64 KiB"
        ),
        EnforcedElsewhere("rpc.limits:MAX_UNAUTHENTICATED", "bytes", "in a message of a client that has not logged in"),
        EnforcedElsewhere(
            "rpc.limits:Limits.max_buffered", "bytes", "received and not yet read on one connection (default)"
        ),
        EnforcedElsewhere("rpc.limits:Limits.max_header_list", "bytes", "in the headers of one request over HTTP/2"),
        EnforcedElsewhere(
            "rpc.limits:Limits.max_header_block",
            "bytes",
            "in these headers as sent; exceeding it ends the connection, not only the request",
        ),
        EnforcedElsewhere("rpc.limits:Limits.max_continuations", "frames", "of headers after the first frame"),
        EnforcedElsewhere("rpc.limits:Limits.handshake_timeout", "seconds", "from connecting to the first request"),
        EnforcedElsewhere("rpc.limits:Limits.write_stall", "seconds", "that a client may go without reading"),
        EnforcedElsewhere("rpc.http.limits:HttpLimits.max_head", "bytes", "in the head of one request over HTTP/1.1"),
        EnforcedElsewhere(
            "rpc.http.limits:HttpLimits.max_target", "bytes", "in the address of one request over HTTP/1.1"
        ),
        EnforcedElsewhere(
            "rpc.http.limits:HttpLimits.max_fields", "fields", "in the head of one request over HTTP/1.1"
        ),
        EnforcedElsewhere("rpc.http.limits:HttpLimits.max_body", "bytes", "in one request to a page of a machine"),
        EnforcedElsewhere("rpc.http.limits:HttpLimits.max_websocket_message", "bytes", "in one message of a WebSocket"),
        EnforcedElsewhere("rpc.access.tokens:MAX_TOKEN", "bytes", "in an access token"),
        EnforcedElsewhere("rpc.access.auth:MAX_CREDENTIAL", "characters", "in the id or the secret of credentials"),
        EnforcedElsewhere(
            "rpc.access.attempts:FAILURES", "failures", "to log in with one id from one address within a minute"
        ),
        EnforcedElsewhere(
            "rpc.access.attempts:ADDRESS_FAILURES", "failures", "to log in from one address within a minute"
        ),
        EnforcedElsewhere(
            "rpc.parsing:MAX_DEPTH", "levels", "of messages inside each other; an object inside another takes three"
        ),
        EnforcedElsewhere("rpc.api.gateway:MAX_BODY", "bytes", "in the body of one call by HTTP and JSON"),
        EnforcedElsewhere("rpc.api.gateway:MAX_REPLY", "bytes", "in its reply, without images and files"),
        EnforcedElsewhere(
            "cloud.work.openings:STREAMS", "responses and live pages", "open for one key at the same time"
        ),
        EnforcedElsewhere("cloud.work.openings:FOLLOWERS", "push channels", "of one part"),
        EnforcedElsewhere("cloud.work.openings:WAITING_AGENTS", "agents", "of one part that wait for requests"),
        EnforcedElsewhere(
            "cloud.work.shares:SHARE",
            "processors",
            "for the long calls of one organization in each group of threads, while several organizations are active",
        ),
        EnforcedElsewhere(
            "cloud.work.shares:BURST", "seconds", "of processor time that it may use before that limit applies"
        ),
        EnforcedElsewhere("cloud.server.training_network:CONNECTIONS", "connections", "of one training script"),
        EnforcedElsewhere(
            "cloud.server.training_network:STREAMS", "calls", "at once on one connection of a training script"
        ),
        EnforcedElsewhere(
            "cloud.server.training_network:BURST",
            "calls",
            "of one start of a training script, before the next limit applies",
        ),
        EnforcedElsewhere(
            "cloud.server.training_network:RATE", "calls", "of a training script in a second, in the long run"
        ),
    ),
    "Configurations and fragments": (
        EnforcedElsewhere("cloud.documents.resolve:NESTING", "levels", "of fragments inside fragments"),
        EnforcedElsewhere(
            "cloud.documents.resolve:MAX_USES", "fragments", "merged into one configuration, nested ones included"
        ),
        EnforcedElsewhere("cloud.documents.resolve:MAX_VALUES", "values", "that fragments add to one configuration"),
        EnforcedElsewhere("cloud.documents.resolve:MAX_MODS", "mods", "of fragments in one configuration"),
        EnforcedElsewhere(
            "cloud.services.configurations.configurations:MAX_CHANGES", "changes", "in one SetConfigProperty call"
        ),
        EnforcedElsewhere("schema.names:MAX_RESOURCE_NAME", "characters", "in the name of a resource"),
    ),
    "Sharing and people": (
        EnforcedElsewhere("cloud.domain.organizations.sharing:MAX_SECRETS", "secrets", "of one location"),
        EnforcedElsewhere("cloud.domain.people.invites:MAX_OPEN", "invitations", "of one organization that are open"),
    ),
    "Registry": (
        EnforcedElsewhere("cloud.domain.registry.items:MAX_NAME", "characters", "in the name of an entry"),
        EnforcedElsewhere(
            "cloud.domain.registry.items:MAX_TEXT", "characters", "in a description, and in the metadata of an entry"
        ),
        EnforcedElsewhere("cloud.domain.registry.versions:MAX_TAGS", "tags", "of one platform"),
        EnforcedElsewhere(
            "cloud.services.common.base:UploadLimits.package", "bytes", "in one package or module (default)"
        ),
        EnforcedElsewhere("runtime.programs.archive:BOUNDS.entries", "files and folders", "in a module's archive"),
        EnforcedElsewhere("runtime.programs.archive:BOUNDS.size", "bytes", "in a module's archive once unpacked"),
        EnforcedElsewhere("runtime.programs.archive:MAX_META", "bytes", "in the meta.json of a module's archive"),
        EnforcedElsewhere(
            "cloud.services.training.scripts:BOUNDS.entries", "files and folders", "in the archive of a training script"
        ),
        EnforcedElsewhere(
            "cloud.services.training.scripts:BOUNDS.size", "bytes", "in the archive of a training script once unpacked"
        ),
        EnforcedElsewhere(
            "cloud.services.training.scripts:BOUNDS.cpu", "seconds", "of processor time to unpack a training script"
        ),
        EnforcedElsewhere("support.foreign.tar:Bounds.depth", "folders", "inside each other in an archive"),
        EnforcedElsewhere("support.foreign.tar:MAX_HEADER", "bytes", "in an extended header of an archive"),
    ),
    "Releases": (
        EnforcedElsewhere("uplink.releases:MAX_FILE", "bytes", "in one release file"),
        EnforcedElsewhere("uplink.releases:MAX_TARGETS", "targets", "of one repository"),
        EnforcedElsewhere("uplink.releases:MAX_METADATA", "bytes", "in one metadata file"),
        EnforcedElsewhere("cloud.services.target:PUBLICATION", "bytes", "in one call that publishes metadata files"),
        EnforcedElsewhere("uplink.releases:MAX_KEYS", "keys", "of one role, and signatures of one metadata file"),
        EnforcedElsewhere("cloud.domain.releases.rollouts:MAX_SELECTED", "tags, and locations,", "of one rollout"),
        EnforcedElsewhere("cloud.domain.releases.reports:OUTCOMES", "outcomes", "kept of one part and program"),
    ),
    "Data": (
        EnforcedElsewhere("cloud.services.common.base:UploadLimits.file", "bytes", "in one uploaded file (default)"),
        EnforcedElsewhere("cloud.domain.data.sources:MAX_TAGS", "tags", "of one upload"),
        EnforcedElsewhere(
            "cloud.domain.data.sources:MAX_TEXT", "characters", "in a tag, a component's name or a method"
        ),
        EnforcedElsewhere("cloud.domain.data.filters:MAX_VALUES", "values", "in one field of a filter"),
        EnforcedElsewhere("cloud.domain.data.pages:MAX_PAGE", "entries", "on one page of an answer"),
        EnforcedElsewhere(
            "cloud.domain.data.table:MAX_COLUMNS",
            "columns",
            "of values in an export; the column `other_values` has the rest",
        ),
        EnforcedElsewhere("cloud.domain.data.segments.sealing:MOST", "readings", "in one Parquet file of --seal-after"),
        EnforcedElsewhere("cloud.domain.data.segments.catalog:MAX_COLUMNS", "columns", "in these files together"),
        EnforcedElsewhere("cloud.domain.data.segments.columns:MAX_FIELDS", "fields", "with a column in one of them"),
        EnforcedElsewhere(
            "cloud.domain.queries.query:MAX_RECENT", "readings", "that are in no file and that one SQL query needs"
        ),
        EnforcedElsewhere("cloud.domain.queries.query:MAX_COPIED", "bytes", "that are copied for one SQL query"),
        EnforcedElsewhere("cloud.domain.queries.query:MAX_ROWS", "rows", "in the result of one SQL query"),
        EnforcedElsewhere("cloud.domain.queries.query:MAX_BYTES", "bytes", "in the result of one SQL query"),
    ),
    "Triggers": (
        EnforcedElsewhere("triggers.document:MAX_TARGETS", "targets", "of one trigger"),
        EnforcedElsewhere("triggers.document:MAX_NAME", "characters", "in the name of a trigger"),
        EnforcedElsewhere("schema.decoding.regex:MAX_PATTERN", "characters", "in a pattern"),
        EnforcedElsewhere("schema.decoding.regex:MAX_STEPS", "steps", "of one search with a pattern"),
        EnforcedElsewhere("cloud.services.target:READING", "bytes", "in one call that tests a trigger with a reading"),
        EnforcedElsewhere("triggers.ssrf:MAX_URL", "characters", "in the address of a webhook"),
    ),
    "Logs": (
        EnforcedElsewhere("cloud.domain.machines.logs:MAX_BATCH", "entries", "in one call"),
        EnforcedElsewhere(
            "cloud.domain.machines.logs:MAX_TEXT", "characters", "in a message or stack; the rest is cut off"
        ),
    ),
}
"""By section of the generated page."""
