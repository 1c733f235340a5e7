"""Emails submitted to a real SMTP server in every mode, and reports of refusals."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from email import message_from_bytes, policy
from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pytest
import trio

from tests.selfsigned import self_signed
from tests.unit.triggers.make import NOW, WHERE, conditional, trigger, upload
from triggers.evaluate import fires
from triggers.mail_text import mail
from triggers.retry import next_try
from triggers.smtp import Mailer, SmtpSettings

SERVER = Path(__file__).with_name("smtp_server.py")
LIMIT = 60.0  # generous: the computer that runs the tests may be busy

Security = Literal["starttls", "tls", "none"]


class Server:
    """A running server, and the messages that it received."""

    def __init__(self, process: trio.Process, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self._read = bytearray()
        self.port = 0

    async def line(self, limit: float = LIMIT) -> str:
        assert self._process.stdout is not None
        with trio.fail_after(limit):
            while b"\n" not in self._read:
                self._read += await self._process.stdout.receive_some() or b"\n"
        text, _, rest = bytes(self._read).partition(b"\n")
        self._read[:] = rest
        return text.decode()

    async def message(self, limit: float = LIMIT) -> tuple[dict[str, Any], EmailMessage]:
        envelope = json.loads(await self.line(limit))
        content = message_from_bytes(base64.b64decode(envelope["content"]), policy=policy.default)
        assert isinstance(content, EmailMessage)
        return envelope, content

    def settings(self, security: Security, user: bool = False, **changes: Any) -> SmtpSettings:
        facts: dict[str, Any] = {
            "host": "localhost",
            "port": self.port,
            "sender": "Cloud <cloud@example.com>",
            "security": security,
            "username": "ann" if user else "",
            "password": "hush" if user else "",
            "ca_file": str(self._folder / "cert.pem"),
        }
        return SmtpSettings(**{**facts, **changes})


@asynccontextmanager
async def server(security: Security, folder: Path) -> AsyncIterator[Server]:
    pem, key = self_signed(["localhost"])
    (folder / "cert.pem").write_bytes(pem)
    (folder / "key.pem").write_bytes(key)
    command = [sys.executable, str(SERVER), security, str(folder / "cert.pem"), str(folder / "key.pem")]
    async with trio.open_nursery() as nursery:
        process = await nursery.start(partial(trio.run_process, command, stdout=subprocess.PIPE, check=False))
        created = Server(process, folder)
        created.port = int(await created.line())
        yield created
        nursery.cancel_scope.cancel()


def message(to: str = "bob@example.com") -> EmailMessage:
    expected = trigger(conditional({"operator": "gt", "value": {"t": 30}}), {"type": "email", "value": to})
    firing = fires(expected, upload({"t": 31, "ort": "Köln"}))
    assert firing is not None
    return mail(
        expected, expected.notifications[0], firing, WHERE, "d-1", NOW,
        sender="Cloud <cloud@example.com>", recipients=[to],
    )  # fmt: skip


@pytest.mark.parametrize(
    ("security", "user"), [("none", False), ("starttls", False), ("starttls", True), ("tls", False), ("tls", True)]
)
async def test_delivered(security: Security, user: bool, tmp_path: Path) -> None:
    async with server(security, tmp_path) as other, Mailer(other.settings(security, user)).opened() as mailer:
        with trio.fail_after(LIMIT):
            outcome = await mailer.deliver(message())
            assert outcome.delivered, outcome.error
        envelope, content = await other.message()
    assert (envelope["from"], envelope["to"]) == ("cloud@example.com", ["bob@example.com"])
    assert envelope["tls"] is (security == "starttls")  # with tls the server receives nothing in plaintext
    assert envelope["user"] == ("ann" if user else "")
    assert content["Subject"] == "Mill: data met the condition (t)"
    assert content["Message-ID"] == "<d-1@example.com>"
    for form in ("plain", "html"):
        part = content.get_body((form,))
        assert part is not None
        assert "31 is greater than 30" in part.get_content()
        assert "Köln" in part.get_content()


async def test_refusals(tmp_path: Path) -> None:
    async with server("none", tmp_path) as other, Mailer(other.settings("none")).opened() as mailer:
        with trio.fail_after(LIMIT):
            never = await mailer.deliver(message("nobody@example.com"))
            later = await mailer.deliver(message("later@example.com"))
            assert (await mailer.deliver(message())).delivered
    assert never.error == "the server refused the message: 550 5.1.1 no such user"
    assert next_try(never, 1, "x") is None
    assert later.error == "the server refused the message: 451 4.7.1 come back later"
    assert next_try(later, 1, "x") is not None


async def test_wrong_settings(tmp_path: Path) -> None:
    async with server("starttls", tmp_path) as other:
        for changes, words in (
            ({"username": "ann", "password": "wrong"}, "rejects user and password: 535"),
            ({"ca_file": ""}, "certificate of localhost is not trusted"),
            ({"ca_file": str(tmp_path / "missing.pem")}, "No such file"),
            ({"security": "tls"}, "no answer from localhost"),
            ({"security": "none"}, "530"),
            ({"host": "127.0.0.1"}, "certificate of 127.0.0.1 is not trusted"),
        ):
            async with Mailer(replace(other.settings("starttls"), **changes)).opened() as mailer:
                with trio.fail_after(LIMIT):
                    outcome = await mailer.deliver(message())
            assert words in outcome.error, (changes, outcome)
    async with Mailer(other.settings("starttls")).opened() as mailer:
        with trio.fail_after(LIMIT):
            outcome = await mailer.deliver(message())
    assert outcome.error.startswith(f"no answer from localhost:{other.port}")
    assert next_try(outcome, 1, "x") is not None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"security": "ssl"}, "starttls, tls or none"),
        ({"host": ""}, "is not an SMTP server"),
        ({"port": 70000}, "is not an SMTP server"),
        ({"sender": "cloud"}, "is not a sender"),
        ({"sender": "a@b\r\nBcc: x"}, "is not a sender"),
        ({"username": "ann"}, "needs both user and password"),
        ({"username": "ann", "password": "x", "security": "none"}, "unencrypted connection"),
    ],
)
def test_invalid_settings_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SmtpSettings(**{"host": "mail.example.com", "sender": "cloud@example.com", **changes})


def test_default_ports_and_masked_passwords() -> None:
    settings = SmtpSettings(host="m", sender="a@b", username="ann", password="hush-hush")
    assert settings.address == ("m", 587)
    assert SmtpSettings(host="m", sender="a@b", security="tls").address == ("m", 465)
    assert SmtpSettings(host="m", sender="a@b", security="none").address == ("m", 25)
    assert "hush-hush" not in repr(settings)
