"""A real SMTP server in a separate process: `python smtp_server.py none|starttls|tls CERT KEY`.

Prints its port, then one line of JSON for each message. It accepts the user ann with the password hush, rejects
messages to nobody@example.com permanently, and those to later@example.com temporarily.
"""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import sys
from typing import Any

from aiosmtpd.smtp import SMTP, AuthResult, LoginPassword


class _Handler:
    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address.startswith("nobody@"):
            return "550 5.1.1 no such user"
        if address.startswith("later@"):
            return "451 4.7.1 come back later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        message = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "tls": session.ssl is not None,
            "user": session.auth_data.login.decode() if session.auth_data else "",
            "content": base64.b64encode(envelope.content).decode(),
        }
        print(json.dumps(message), flush=True)
        return "250 OK"


def _authenticate(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    valid = isinstance(data, LoginPassword) and (data.login, data.password) == (b"ann", b"hush")
    return AuthResult(success=valid, auth_data=data, handled=False)


async def main(security: str, certificate: str, key: str) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def made() -> SMTP:
        return SMTP(
            _Handler(),
            hostname="mail.test",
            tls_context=context if security == "starttls" else None,
            require_starttls=security == "starttls",
            authenticator=_authenticate,
            auth_require_tls=security == "starttls",
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(made, "127.0.0.1", 0, ssl=context if security == "tls" else None)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
