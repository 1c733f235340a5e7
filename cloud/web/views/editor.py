"""Shared functions of the configuration and fragment editors: checks and completion while typing, and drafts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from cloud.documents import pieces
from cloud.documents.readable import check_text
from cloud.domain.configurations.revisions import Revision
from cloud.editing.catalogue import EditingContext, catalogue
from cloud.editing.comments import without_comments
from cloud.editing.completion import completions
from cloud.editing.documents import model_named, with_resource, written
from cloud.editing.edits import rewritten
from cloud.editing.findings import DocumentFinding, findings
from cloud.editing.forms import encoded_schema
from cloud.editing.merging import ABSENT, Merged
from cloud.editing.review import Review, review
from cloud.services.configurations.editing import Save
from cloud.values.limits import DOCUMENT_FORM
from cloud.web.common.site import check_size, offload, render_macro
from schema import ErrorKind, MachineError, Masker, masked
from schema.decoding import parse_json

MAX_CHECKED: Final = 256 * 1024  # characters; longer texts are checked only on review, not while typing
MAX_SHOWN: Final = 100  # findings shown to the user
MAX_VALUE: Final = 200  # characters of a value in a conflict


@dataclass(frozen=True, slots=True)
class Merge:
    """The changes that another user saved while a draft was written, and those of the draft."""

    revision: int
    who: str
    saved: datetime
    theirs: Review
    mine: Review
    conflicts: list[tuple[str, str, str]]


def with_changes(saves: Sequence[Save]) -> list[tuple[Save, Review | None]]:
    """Return revisions with the changes of each; None for the first revision."""
    return [
        (save, None if save.revision.before is None else review(save.revision.before, save.revision.document))
        for save in saves
    ]


def compared(revisions: Sequence[Revision]) -> tuple[int, int, Review] | None:
    """Return the numbers of two revisions and their difference; None unless there are exactly two."""
    if len(revisions) != 2:
        return None
    old, new = revisions
    return old.number, new.number, review(old.document, new.document)


def older(saves: Sequence[Save]) -> int | None:
    """Return the revision below which the next page begins; None if there is none."""
    last = saves[-1].revision.number if saves else 1
    return last if last > 1 else None


async def read_draft(request: Request) -> tuple[str, int]:
    """Read the editor's text and cursor, which the page's script sends as JSON. INVALID if they are missing."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        check_size(len(body), DOCUMENT_FORM)
    try:
        parsed = await offload(request, len(body), lambda: pieces.loads(body.decode("utf-8", "replace")))
        text, cursor = parsed["text"], parsed.get("cursor", 0)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        text, cursor = None, 0
    if not isinstance(text, str) or not isinstance(cursor, int):
        raise MachineError(
            "the request has no text, or an invalid cursor",
            kind=ErrorKind.INVALID,
            remedy='send {"text": "...", "cursor": 0}',
        )
    return text, max(0, min(cursor, len(text)))


def check_response(text: str, context: EditingContext, *, partial: bool = False) -> Response:
    """Return the findings of a text, for its marks and fields, and the updated list of them."""
    if len(text) > MAX_CHECKED:
        return JSONResponse({"findings": [], "patch": {}})
    shown_findings = findings_in(text, context, partial=partial)
    patch = {"findings": render_macro("editing.html", "findings_list", shown_findings)}
    return JSONResponse({"findings": [asdict(finding) for finding in shown_findings], "patch": patch})


def findings_in(text: str, context: EditingContext, *, partial: bool = False) -> tuple[DocumentFinding, ...]:
    """Return at most MAX_SHOWN findings; see `findings`."""
    return findings(text, context, partial=partial)[:MAX_SHOWN]


def completion_response(text: str, cursor: int, context: EditingContext) -> Response:
    """Return the completions at the cursor."""
    if len(text) > MAX_CHECKED:
        return JSONResponse({"start": cursor, "end": cursor, "choices": []})
    return JSONResponse(asdict(completions(text, cursor, context, catalogue())))


def text_in(form: FormData, name: str = "document") -> str:
    """Return a text field with CR LF, which browsers send, replaced by LF. INVALID if it is too large."""
    value = form.get(name, "")
    text = value.replace("\r\n", "\n") if isinstance(value, str) else ""
    check_text(text)
    return text


def number_in(form: Mapping[str, Any], name: str) -> int:
    """Return a number of a form; INVALID if it is not a number."""
    value = str(form.get(name, ""))
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise MachineError(f"{name} is not a number", kind=ErrorKind.INVALID, remedy="open the page again")
    return int(value)


def document_in(text: str) -> dict[str, Any]:
    """Parse a text, which may have comments, as a JSON object; INVALID, with the position, if it is not one."""
    document = parse_json(without_comments(text).encode("utf-8", "surrogatepass"))
    if not isinstance(document, dict):
        raise MachineError("the configuration is not a JSON object", kind=ErrorKind.INVALID, remedy="write {...}")
    return document


def with_added_resource(form: FormData) -> str:
    """Return the draft with the requested resource added."""
    model = form.get("model", "")
    entry = model_named(catalogue(), model if isinstance(model, str) else "")
    text = text_in(form)
    return rewritten(text, with_resource(document_in(text), entry, str(form.get("resource", "")).strip()))


def kept_text(text: str, document: Mapping[str, Any]) -> str:
    """Return the text to store next to its document; empty if the document alone gives the same text."""
    return "" if text.strip() == written(document).strip() else text


def schema_address() -> str:
    """Return the address of the fields of the form, which is different for each version."""
    return f"/configuration/schema?v={encoded_schema().version}"


def conflicts_of(merged: Merged, *documents: Any) -> list[tuple[str, str, str]]:
    """Return path, their value and my value of each conflict, masked and truncated."""
    masker = Masker()
    for document in documents:
        masker = masker.and_those_of(document)

    def display(path: str, value: Any) -> str:
        if value is ABSENT:
            return "(removed)"
        text = json.dumps(masker.value(masked(value, path.split("."))), ensure_ascii=False)
        return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"

    return [
        (conflict.path, display(conflict.path, conflict.theirs), display(conflict.path, conflict.mine))
        for conflict in merged.conflicts
    ]


def models() -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the models to choose from, by API: `API MODEL` and the display name."""
    catalog = catalogue()
    return [
        (api.partition(":")[2].replace(":", " "), [(f"{api} {model.word}", model.word) for model in catalog.of(api)])
        for api in catalog.apis
    ]
