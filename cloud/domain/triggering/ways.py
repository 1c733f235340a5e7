"""Administrator settings for deliveries: the mail server, and the private addresses that webhooks may reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast

from triggers import NOTHING, Allow, SmtpSettings

SECURITIES: Final = ("starttls", "tls", "none")
USER: Final = "MACHINE_CLOUD_SMTP_USER"
PASSWORD: Final = "MACHINE_CLOUD_SMTP_PASSWORD"  # name of an environment variable


@dataclass(frozen=True, slots=True)
class DeliverySettings:
    """Delivery settings. Without `smtp`, emails are created and shown, but not sent."""

    smtp: SmtpSettings | None = None
    allow: Allow = NOTHING


NOTHING_SET: Final = DeliverySettings()


def ways(
    *,
    smtp: str,
    sender: str,
    security: str,
    ca_file: str,
    environment: Mapping[str, str],
    allow: Iterable[str],
) -> DeliverySettings:
    """Parse the options of the command line. `smtp` is HOST, HOST:PORT or empty. ValueError explains invalid values."""
    return DeliverySettings(_settings(smtp, sender, security, ca_file, environment), Allow.parse(allow))


def _settings(
    smtp: str, sender: str, security: str, ca_file: str, environment: Mapping[str, str]
) -> SmtpSettings | None:
    if not smtp:
        if sender:
            raise ValueError("--smtp-from, the sender of emails, needs --smtp HOST:PORT")
        return None
    if not sender:
        raise ValueError("--smtp needs --smtp-from, such as alerts@example.com")
    host, port = _address(smtp)
    return SmtpSettings(
        host=host,
        port=port,
        sender=sender,
        security=cast(Literal["starttls", "tls", "none"], security),
        username=environment.get(USER, ""),
        password=environment.get(PASSWORD, ""),
        ca_file=ca_file,
    )


def _address(text: str) -> tuple[str, int]:
    """Parse `mail.example.com`, `mail.example.com:587` or `[::1]:25`; the port is 0 if missing."""
    host, separator, port = text.rpartition(":")
    if not separator or (text.startswith("[") and text.endswith("]")):
        host, port = text, "0"
    if not (port.isascii() and port.isdigit() and len(port) <= 5) or (":" in host and not host.startswith("[")):
        raise ValueError(f"--smtp {text!r} is not HOST:PORT")
    return host.strip("[]"), int(port)
