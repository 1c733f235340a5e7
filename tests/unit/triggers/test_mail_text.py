"""The email: its content in both formats, without misleading links or headers."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from email import message_from_bytes, policy
from email.message import EmailMessage
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.triggers.make import NOW, WHERE, conditional, data, trigger, upload
from triggers.evaluate import fires
from triggers.events import Firing, Logged, LogLine, Presence, Where
from triggers.mail_text import MAX_LINES, mail

ANN = {"type": "email", "value": "ann@example.com"}


def message(event: Any, happening: Any, where: Where = WHERE, link: str = "", **more: Any) -> EmailMessage:
    """Return the message as it arrives."""
    expected = trigger(event, ANN, **more)
    firing = fires(expected, happening)
    assert firing is not None
    result = mail(
        expected, expected.notifications[0], firing, where, "d-1", NOW,
        sender="Cloud <cloud@example.com>", recipients=["ann@example.com"], link=link,
    )  # fmt: skip
    arrived = message_from_bytes(result.as_bytes(), policy=policy.default)
    assert isinstance(arrived, EmailMessage)
    return arrived


def text_of(arrived: EmailMessage, form: str = "plain") -> str:
    part = arrived.get_body((form,))
    assert part is not None
    content: str = part.get_content()
    return content.replace("\r\n", "\n")


def test_head() -> None:
    arrived = message({"type": "part_offline"}, Presence(False))
    assert arrived["Subject"] == "Mill: went offline (t)"
    assert arrived["From"] == "Cloud <cloud@example.com>"
    assert arrived["To"] == "ann@example.com"
    assert arrived["Message-ID"] == "<d-1@example.com>"
    assert arrived["Auto-Submitted"] == "auto-generated"
    assert arrived["Date"].datetime == NOW.replace(microsecond=0)


@pytest.mark.parametrize("form", ["plain", "html"])
def test_a_condition_says_what_held_and_shows_the_reading(form: str) -> None:
    event = conditional({"operator": "gt", "value": {"t": 30}})
    text = text_of(message(event, upload({"readings": {"t": 31, "städte": "Köln"}}), link="https://cloud/m/1"), form)
    for words in (
        "31 is greater than 30",
        "Köln",
        "Mill",
        "Hall",
        "Org",
        "main",
        "sensor:t",
        "Readings",
        "https://cloud/m/1",
    ):
        assert words in text.replace("&gt;", ">"), words


def test_a_test_without_a_reading_says_what_would_be_compared() -> None:
    expected = trigger(conditional({"operator": "gt", "value": {"t": 30, "städte": "Köln"}}), ANN)
    assert expected.event.conditional is not None
    firing = Firing("t", expected.event.type, upload(), condition=expected.event.conditional.evals)
    sent = mail(expected, expected.notifications[0], firing, WHERE, "d-1", NOW, sender="a@b.c", recipients=["d@e.f"])
    arrived = message_from_bytes(sent.as_bytes(), policy=policy.default)
    assert isinstance(arrived, EmailMessage)
    assert 'gt {"t": 30, "städte": "Köln"}\n' in text_of(arrived)


def test_data_and_files() -> None:
    text = text_of(message(data("file"), upload(data_type="file", last=NOW)))
    assert "file-1" in text
    assert "2026-01-02T03:04:05.678901Z\n" in text
    assert "2026-01-02T03:04:05.678901Z to 2026-01-02T03:04:07.678901Z" in text_of(
        message(data("tabular"), upload({"t": 1}, {"t": 2}))
    )


def test_the_number_of_readings_is_shown_if_there_are_several() -> None:
    row = re.compile(r"^Readings:? +\d+$", re.MULTILINE)
    single = text_of(message(data("tabular"), upload({"t": 1})))
    several = text_of(message(data("tabular"), upload({"t": 1}, {"t": 2})))
    assert row.search(single) is None
    assert row.search(several) is not None


def test_log_entries_the_newest() -> None:
    lines = tuple(LogLine(NOW + timedelta(seconds=n), "error", "arm", f"failure {n}.") for n in range(MAX_LINES + 3))
    arrived = message({"type": "conditional_logs_ingested", "log_levels": ["error"]}, Logged({"error": lines}))
    text = text_of(arrived)
    assert "(3 older entries are not shown)" in text
    assert "ERROR arm: failure 52." in text
    assert "failure 2." not in text.replace("failure 52.", "").replace("failure 12.", "")


def test_notes_are_shown() -> None:
    assert "Ask Ann.\n" in text_of(message({"type": "part_online"}, Presence(True), notes="Ask Ann."))


def test_a_large_reading_is_cut() -> None:
    text = text_of(message(data("tabular"), upload({"a": "x" * 100_000})))
    assert len(text) < 20_000
    assert "cut off" in text


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=30))
def test_no_name_breaks_out_of_its_place(name: str) -> None:
    where = replace(WHERE, machine_name=name + "<script>alert(1)</script>\r\nBcc: eve@example.com", part_name="<b>")
    arrived = message(data("tabular"), upload({"t": "<img src=x>"}), where, link='https://x/"><b>')
    assert arrived["Bcc"] is None
    parser = _Tags()
    parser.feed(text_of(arrived, "html"))
    assert not {"script", "b", "img"} & set(parser.tags)
