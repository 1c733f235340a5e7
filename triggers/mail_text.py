"""Notification emails, as text and HTML. Pure."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from datetime import datetime
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from typing import Final

from triggers.document import CONDITIONAL, DATA, LOGS, OFFLINE, ONLINE, Notification, Trigger
from triggers.evaluate import findings
from triggers.events import Firing, Ingested, TrainingEnded, Where
from triggers.webhook import TRAINING, finite, rfc3339

MAX_READING: Final = 16 * 1024  # characters of a reading
MAX_LINES: Final = 50  # log entries in one email; the newest are kept
_LINE: Final = 500  # characters of a log entry

_HAPPENED: Final = {
    DATA: "data was ingested",
    CONDITIONAL: "data met the condition",
    LOGS: "entries were logged",
    ONLINE: "came online",
    OFFLINE: "went offline",
}

_ENDED: Final = {"completed": "completed", "failed": "failed", "canceled": "was canceled"}
_ALERT: Final = "alert"
_LINKS: Final = {
    **dict.fromkeys(_HAPPENED, "Open the machine"),
    TRAINING: "Open the training job",
    _ALERT: "Open the alerts",
}


def mail(
    trigger: Trigger,
    notification: Notification,
    firing: Firing,
    where: Where,
    id_: str,
    now: datetime,
    *,
    sender: str,
    recipients: Sequence[str],
    link: str = "",
) -> EmailMessage:
    """Return the message for one notification. `id_` must be the same on every attempt; it determines the Message-ID.

    `now` is the time at which the trigger fired; `link` is the URL of the machine's page; `recipients` are the resolved
    addresses of `notification`.
    """
    subject = _one_line(f"{where.machine_name}: {_HAPPENED[firing.type]} ({firing.trigger})")
    rows, blocks = _facts(firing, where, now), _blocks(firing)
    if trigger.notes:
        blocks = (("Notes", trigger.notes), *blocks)
    return _message(subject, firing.type, rows, blocks, id_, now, sender, recipients, link)


def mail_about_training(
    event: TrainingEnded, organization: str, id_: str, now: datetime, *, sender: str, recipient: str, link: str
) -> EmailMessage:
    """Return the message about the end of a training job of an organization with this name; see `mail`."""
    model = f"{event.model_name} {event.model_version}"
    rows = [
        ("Event", f"a training job {_ENDED[event.state]}"),
        ("Model", model),
        ("Reason", event.error),
        ("Package", event.package),
        ("Submitted", rfc3339(event.created)),
        ("Started", "" if event.started is None else rfc3339(event.started)),
        ("Ended", rfc3339(event.ended)),
        ("Organization", organization),
        ("Job", event.job_id),
    ]
    subject = _one_line(f"{model}: training {_ENDED[event.state]}")
    facts = [(name, _one_line(value)) for name, value in rows if value]
    return _message(subject, TRAINING, facts, (), id_, now, sender, [recipient], link)


def mail_about_alerts(
    subject: str,
    facts: Sequence[tuple[str, str]],
    lines: Sequence[str],
    id_: str,
    now: datetime,
    *,
    sender: str,
    recipient: str,
    link: str,
) -> EmailMessage:
    """Return the message about alerts: names and values of what they have in common, and a line about each."""
    rows = [(name, _one_line(value)) for name, value in (*facts, ("Time", rfc3339(now)))]
    blocks = [("Alerts", "\n".join(map(_one_line, lines)))]
    return _message(_one_line(subject), _ALERT, rows, blocks, id_, now, sender, [recipient], link)


def _message(
    subject: str,
    kind: str,
    rows: Sequence[tuple[str, str]],
    blocks: Sequence[tuple[str, str]],
    id_: str,
    now: datetime,
    sender: str,
    recipients: Sequence[str],
    link: str,
) -> EmailMessage:
    message = EmailMessage(policy=SMTP)
    message["Subject"] = subject
    message["From"] = sender
    message["To"] = ", ".join(recipients)
    message["Date"] = format_datetime(now)
    message["Message-ID"] = f"<{id_}@{_domain(sender)}>"
    message["Auto-Submitted"] = "auto-generated"  # RFC 3834: prevents vacation notices
    message["X-Trigger-Type"] = kind
    message.set_content(_text(rows, blocks, link), cte="quoted-printable")
    message.add_alternative(_html(rows, blocks, link, _LINKS[kind]), subtype="html", cte="quoted-printable")
    return message


def _facts(firing: Firing, where: Where, now: datetime) -> list[tuple[str, str]]:
    rows = [
        ("Trigger", firing.trigger),
        ("Event", _HAPPENED[firing.type]),
        ("Time", rfc3339(now)),
        ("Machine", where.machine_name),
        ("Part", where.part_name),
        ("Location", where.location_name),
        ("Organization", where.organization_name),
    ]
    if isinstance(firing.happening, Ingested):
        upload = firing.happening
        rows += [("Component", f"{upload.component_type}:{upload.component_name}"), ("Method", upload.method)]
        rows += [("Data", upload.data_type), ("Received", _span(upload))]
        rows += [("File", upload.file_id)] if upload.file_id else []
    if firing.count > 1:
        rows.append(("Entries" if firing.lines else "Readings", str(firing.count)))
    return [(name, _one_line(value)) for name, value in rows]


def _span(upload: Ingested) -> str:
    first, last = rfc3339(upload.first), rfc3339(upload.last)
    return first if first == last else f"{first} to {last}"


def _blocks(firing: Firing) -> tuple[tuple[str, str], ...]:
    blocks = []
    if firing.condition and firing.reading is not None:
        results = findings(firing.condition, firing.reading.data)
        blocks.append(("Condition", "\n".join(f"{finding.path or 'reading'}: {finding.reason}" for finding in results)))
    elif firing.condition:
        conditions = (
            f"{item.operator} {json.dumps(finite(item.value), ensure_ascii=False)}" for item in firing.condition
        )
        blocks.append(("Condition", "\n".join(conditions)))
    if firing.reading is not None:
        text = json.dumps(finite(firing.reading.data), indent=2, ensure_ascii=False)
        cut = text if len(text) <= MAX_READING else f"{text[:MAX_READING]}\n(cut off: {len(text)} characters)"
        blocks.append(("Reading", cut))
    if firing.lines:
        newest = firing.lines[-MAX_LINES:]
        left = len(firing.lines) - len(newest)
        lines = [f"{rfc3339(line.time)} {line.level.upper()} {line.logger}: {line.message[:_LINE]}" for line in newest]
        blocks.append(("Log", "\n".join([*([f"({left} older entries are not shown)"] if left else []), *lines])))
    return tuple(blocks)


def _text(rows: Sequence[tuple[str, str]], blocks: Sequence[tuple[str, str]], link: str) -> str:
    width = max(len(name) for name, _ in rows)
    parts = ["\n".join(f"{name + ':':<{width + 1}} {value}" for name, value in rows)]
    parts += [f"{name}\n{text}" for name, text in blocks]
    parts += [link] if link else []
    return "\n\n".join(parts) + "\n"


def _html(rows: Sequence[tuple[str, str]], blocks: Sequence[tuple[str, str]], link: str, link_text: str) -> str:
    table = "".join(
        f'<tr><th align="left">{html.escape(name)}</th><td>{html.escape(value)}</td></tr>\n' for name, value in rows
    )
    rest = "".join(f"<h2>{html.escape(name)}</h2>\n<pre>{html.escape(text)}</pre>\n" for name, text in blocks)
    anchor = f'<p><a href="{html.escape(link)}">{link_text}</a></p>\n' if link else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>'
        f"{html.escape(rows[0][1])}</title></head><body>\n<table>\n{table}</table>\n{rest}{anchor}</body></html>\n"
    )


def _one_line(text: str) -> str:
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def _domain(sender: str) -> str:
    domain = sender.rpartition("@")[2].strip("<> ")
    return domain if domain.isascii() and domain else "localhost"
