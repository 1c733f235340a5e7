"""Receive webhooks of triggers, verify their signatures and print the events. Needs only Python.

    python examples/webhook_receiver.py --secret whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw

The secret is the one in the trigger: `"notifications": [{"type": "webhook", "value": URL, "secret": "whsec_..."}]`.
Without --secret and --port, the environment variables WEBHOOK_SECRET and WEBHOOK_PORT are used; .run/env sets them.
A cloud calls private addresses, such as this computer's own, only if it is started with `--webhook-allow 127.0.0.1`.
"""

from __future__ import annotations

import argparse
import base64
import hmac
import json
import os
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import ClassVar

TOLERANCE = 300  # maximum age of a message in seconds: an older copy may be a replay
MAX_BODY = 1 << 20  # bytes


def verify(headers: Mapping[str, str], body: bytes, secret: str) -> str:
    """Return the problem with a message, or "". Standard Webhooks 1.0: the signature covers ID, time and body."""
    name, moment = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not moment.isdigit() or abs(time.time() - int(moment)) > TOLERANCE:
        return "the time is missing or too far from now"
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.digest(key, f"{name}.{moment}.".encode() + body, "sha256"))
    signatures = [word.partition(",") for word in headers.get("webhook-signature", "").split()]
    if not any(version == "v1" and hmac.compare_digest(expected, text.encode()) for version, _, text in signatures):
        return "no signature with this secret"
    return ""


class Receiver(BaseHTTPRequestHandler):
    """Handle GET for online and offline events, and POST for data and logs."""

    secret = ""
    seen: ClassVar[set[str]] = set()

    def do_POST(self) -> None:
        """Answer quickly with 2xx: the cloud waits 15 seconds, and retries after failures."""
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(min(length, MAX_BODY))
        if problem := verify(self.headers, body, self.secret):
            print(f"refused: {problem}", flush=True)
            self._answer(401)
            return
        name = self.headers["webhook-id"]
        if name not in self.seen:  # the same message may arrive twice, always with the same ID
            self.seen.add(name)
            print(described(self.headers, body), flush=True)
        self._answer(204)

    do_GET = do_POST

    def _answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - of the base class
        """Log nothing: the events are printed."""


def described(headers: Mapping[str, str], body: bytes) -> str:
    """Describe a message in one line."""
    event, trigger = headers.get("Trigger-Type", "?"), headers.get("Trigger-Name", "?")
    if not body:
        return f"{event} of {headers.get('Machine-Name', '?')}: {trigger}"
    content = json.loads(body)
    if isinstance(content, list):
        return f"{event}: {trigger}: {len(content)} entries, the last: {content[-1]['message']}"
    reading = content.get("data", {}).get("data")
    return f"{event} of {content['machine_name']}: {trigger}: {content['component_name']} {json.dumps(reading)}"


def main() -> None:
    """Receive until Ctrl-C."""
    parser = argparse.ArgumentParser(description="Receive webhooks of triggers and verify their signatures.")
    parser.add_argument("--port", type=int, default=int(os.environ.get("WEBHOOK_PORT", "8099")))
    parser.add_argument("--secret", default=os.environ.get("WEBHOOK_SECRET"), help="secret of the trigger: whsec_...")
    options = parser.parse_args()
    if not options.secret:
        parser.error("give the trigger's secret with --secret; for the trigger of `make run`, first run `. .run/env`")
    Receiver.secret = options.secret
    with HTTPServer(("127.0.0.1", options.port), Receiver) as server:
        print(f"listening at http://127.0.0.1:{server.server_port}/", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
