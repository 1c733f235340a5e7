"""Delivery of emails through an SMTP server, from a dedicated thread."""

from __future__ import annotations

import smtplib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from typing import Final, Literal

from support import HangingCallError, Worker
from triggers.retry import AttemptOutcome

_SOCKET_LIMIT: Final = 20.0  # seconds of silence; nothing else can interrupt the thread


@dataclass(frozen=True, slots=True)
class SmtpSettings:
    """Settings of the SMTP server. The constructor raises ValueError for invalid settings."""

    host: str
    sender: str  # value of the From header
    port: int = 0  # 0 selects the default: 587 for starttls, 465 for tls, 25 for none
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: str = ""  # empty: no authentication
    password: str = field(default="", repr=False)
    ca_file: str = ""  # PEM file of certificates to trust instead of the system's

    def __post_init__(self) -> None:
        if self.security not in _PORTS:
            raise ValueError(f"{self.security!r} is not a security of SMTP: write starttls, tls or none")
        if not self.host or not 0 <= self.port <= 65535:
            raise ValueError(f"{self.host}:{self.port} is not an SMTP server: write a host and a port from 1 to 65535")
        if "@" not in self.sender or not self.sender.isprintable():
            raise ValueError(f"{self.sender!r} is not a sender: write for example alerts@example.com")
        if bool(self.username) is not bool(self.password):
            raise ValueError("SMTP needs both user and password: give both or neither")
        if self.username and self.security == "none":
            raise ValueError("a password is not sent over an unencrypted connection: use starttls or tls")

    @property
    def address(self) -> tuple[str, int]:
        """Host and port, with the default port applied."""
        return self.host, self.port or _PORTS[self.security]


_PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}


class Mailer:
    """Sender of messages to one server, one at a time. Use `async with Mailer(settings).opened() as mailer`."""

    def __init__(self, settings: SmtpSettings) -> None:
        self.settings = settings
        self._worker = Worker("mail")

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[Mailer]:
        """Open the mailer for the duration of the block. Leaving it does not wait for a slow server."""
        with suppress(HangingCallError):
            async with self._worker.opened():
                yield self

    async def deliver(self, message: EmailMessage) -> AttemptOutcome:
        """Send a message once and return the outcome. Raises only Cancelled.

        After a cancellation, the thread continues, so the message may still arrive. A message that the server accepts
        for only some of its recipients counts as delivered.
        """
        return await self._worker.run(lambda: send(self.settings, message))


def send(settings: SmtpSettings, message: EmailMessage) -> AttemptOutcome:
    """Send a message and return the outcome; the blocking implementation of `Mailer.deliver`."""
    host, port = settings.address
    accepted = False
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
        with _connection(settings, context) as server:
            if settings.security == "starttls":
                server.starttls(context=context)
            if settings.username:
                server.login(settings.username, settings.password)
            server.send_message(message)
            accepted = True
    except smtplib.SMTPRecipientsRefused as error:
        code, text = next(iter(error.recipients.values()), (550, b""))
        return _refused(code, text, final=code >= 500)
    except smtplib.SMTPAuthenticationError as error:
        return _refused(error.smtp_code, error.smtp_error, "the server rejects user and password", final=False)
    except smtplib.SMTPResponseException as error:
        if accepted:  # only QUIT failed
            return AttemptOutcome(250)
        return _refused(error.smtp_code, error.smtp_error, final=error.smtp_code >= 500)
    except smtplib.SMTPNotSupportedError as error:
        return AttemptOutcome(error=f"{host}:{port}: {error}", final=True)
    except ssl.SSLCertVerificationError as error:
        return AttemptOutcome(error=f"the certificate of {host} is not trusted: {error.verify_message}")
    except (smtplib.SMTPException, OSError) as error:
        if accepted:
            return AttemptOutcome(250)
        return AttemptOutcome(error=f"no answer from {host}:{port}: {error or type(error).__name__}")
    except ValueError as error:  # from an invalid header
        return AttemptOutcome(error=f"the message cannot be sent: {error}", final=True)
    return AttemptOutcome(250)


def _connection(settings: SmtpSettings, context: ssl.SSLContext) -> smtplib.SMTP:
    host, port = settings.address
    if settings.security == "tls":
        return smtplib.SMTP_SSL(host, port, timeout=_SOCKET_LIMIT, context=context)
    return smtplib.SMTP(host, port, timeout=_SOCKET_LIMIT)


def _refused(
    code: int, text: bytes | str, problem: str = "the server refused the message", *, final: bool
) -> AttemptOutcome:
    reply = text.decode(errors="replace") if isinstance(text, bytes) else text
    return AttemptOutcome(code, f"{problem}: {code} {' '.join(reply.split())}"[:500], final=final)
