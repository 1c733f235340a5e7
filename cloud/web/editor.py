"""What the editor of configurations and of fragments asks while one types, and what both do with a draft."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final

from starlette.datastructures import FormData
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from cloud import pieces
from cloud.editing.catalogue import Known, catalogue
from cloud.editing.completion import completions
from cloud.editing.documents import model_named, outline, with_resource, written
from cloud.editing.findings import Finding, findings
from cloud.editing.merging import ABSENT, Merged
from cloud.editing.review import Review, review
from cloud.limits import DOCUMENT_FORM
from cloud.readable import check_text
from cloud.revisions import Revision
from cloud.services.editing import Save
from cloud.web.site import aside, check_size, part
from schema.errors import ErrorKind, MachineError
from schema.secrets import Masker, masked
from schema.syntax import parse_json

MAX_CHECKED: Final = 256 * 1024  # characters; longer ones are checked when they are reviewed, not while one types
MAX_SHOWN: Final = 100  # findings; more nobody reads
MAX_VALUE: Final = 200  # characters of a value in a conflict


@dataclass(frozen=True, slots=True)
class Merge:
    """What somebody else has saved while a draft was written."""

    revision: int
    who: str
    saved: datetime
    theirs: Review
    mine: Review
    conflicts: list[tuple[str, str, str]]


def with_changes(saves: Sequence[Save]) -> list[tuple[Save, Review | None]]:
    """Revisions, each with what it changed; None for the first one."""
    return [
        (one, None if one.revision.before is None else review(one.revision.before, one.revision.document))
        for one in saves
    ]


def compared(revisions: Sequence[Revision]) -> tuple[int, int, Review] | None:
    """What differs between two revisions; None if they are not two."""
    if len(revisions) != 2:
        return None
    old, new = revisions
    return old.number, new.number, review(old.document, new.document)


def older(saves: Sequence[Save]) -> int | None:
    """Below which revision the next page begins; None if there is none."""
    last = saves[-1].revision.number if saves else 1
    return last if last > 1 else None


async def asked(request: Request) -> tuple[str, int]:
    """The text of the editor and the cursor in it, which the page's script sends as JSON."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        check_size(len(body), DOCUMENT_FORM)
    try:
        sent = await aside(request, len(body), lambda: pieces.loads(body.decode("utf-8", "replace")))
        text, cursor = sent["text"], sent.get("cursor", 0)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        text, cursor = None, 0
    if not isinstance(text, str) or not isinstance(cursor, int):
        raise MachineError('send {"text": "...", "cursor": 0}', kind=ErrorKind.INVALID)
    return text, max(0, min(cursor, len(text)))


def checked(text: str, known: Known, *, partial: bool = False) -> Response:
    """What is wrong with the text, for the marks in it, and the parts of the page that say it in words."""
    if len(text) > MAX_CHECKED:
        return JSONResponse({"findings": [], "patch": {}})
    found = found_in(text, known, partial=partial)
    patch = {
        "findings": part("editing.html", "found", found),
        "outline": part("editing.html", "outlined", outline(text)),
    }
    return JSONResponse({"findings": [asdict(one) for one in found], "patch": patch})


def found_in(text: str, known: Known, *, partial: bool = False) -> tuple[Finding, ...]:
    """As `findings`, as many as are shown."""
    return findings(text, known, partial=partial)[:MAX_SHOWN]


def completed(text: str, cursor: int, known: Known) -> Response:
    """What may stand at the cursor."""
    if len(text) > MAX_CHECKED:
        return JSONResponse({"start": cursor, "end": cursor, "choices": []})
    return JSONResponse(asdict(completions(text, cursor, known, catalogue())))


def text_in(form: FormData, name: str = "document") -> str:
    """A text of a form as it was typed: browsers send line ends as CR LF. INVALID for one that is too large."""
    value = form.get(name, "")
    text = value.replace("\r\n", "\n") if isinstance(value, str) else ""
    check_text(text)
    return text


def number_in(form: Mapping[str, Any], name: str) -> int:
    """A number of a form; INVALID if it is none."""
    value = str(form.get(name, ""))
    if not (value.isascii() and value.isdigit() and len(value) < 10):
        raise MachineError(f"{name} is not a number", kind=ErrorKind.INVALID, remedy="open the page again")
    return int(value)


def document_in(text: str) -> dict[str, Any]:
    """The object that a text stands for; INVALID with its place if it is none."""
    document = parse_json(text.encode("utf-8", "surrogatepass"))
    if not isinstance(document, dict):
        raise MachineError("a configuration is an object", kind=ErrorKind.INVALID, remedy="write {...}")
    return document


def added(form: FormData) -> tuple[str, int]:
    """The draft with one more resource, and where that begins."""
    model = form.get("model", "")
    entry = model_named(catalogue(), model if isinstance(model, str) else "")
    text = written(with_resource(document_in(text_in(form)), entry, str(form.get("resource", "")).strip()))
    new = [one for one in outline(text) if one.section == entry.section][-1]
    return text, new.start


def conflicts_of(merged: Merged, *documents: Any) -> list[tuple[str, str, str]]:
    """Path, their value and mine of each conflict, masked and short."""
    masker = Masker()
    for one in documents:
        masker = masker.and_those_of(one)

    def shown(path: str, value: Any) -> str:
        if value is ABSENT:
            return "(removed)"
        text = json.dumps(masker.value(masked(value, path.split("."))), ensure_ascii=False)
        return text if len(text) <= MAX_VALUE else f"{text[:MAX_VALUE]}…"

    return [(one.path, shown(one.path, one.theirs), shown(one.path, one.mine)) for one in merged.conflicts]


def models() -> list[tuple[str, list[tuple[str, str]]]]:
    """The models to choose from, by API: `API MODEL` and the word to show."""
    known = catalogue()
    return [
        (api.partition(":")[2].replace(":", " "), [(f"{api} {one.word}", one.word) for one in known.of(api)])
        for api in known.apis
    ]
