"""Send HTTP requests as a browser does, without following redirects: a program for a namespace of the guest.

Standard input is a JSON list of requests (method, url, headers, body, ca, limit), standard output the answers:
status, headers (names in lower case) and body, or `error`. This file has no dependencies.
"""

from __future__ import annotations

import http.client
import json
import ssl
import sys
from typing import Any
from urllib.parse import urlsplit


def fetch(request: dict[str, Any]) -> dict[str, Any]:
    """Send a request. Certificates are verified with the file `ca`; without it they are not verified."""
    parts = urlsplit(request["url"])
    connection: http.client.HTTPConnection
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=request["ca"] or None)
        if not request["ca"]:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(parts.netloc, timeout=request["limit"], context=context)
    else:
        connection = http.client.HTTPConnection(parts.netloc, timeout=request["limit"])
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(request["method"], path, request["body"] or None, request["headers"])
        answer = connection.getresponse()
        headers = {name.lower(): value for name, value in answer.getheaders()}
        return {"status": answer.status, "headers": headers, "body": answer.read().decode(errors="replace")}
    except (OSError, http.client.HTTPException) as error:
        return {"error": f"{type(error).__name__}: {error}"}
    finally:
        connection.close()


if __name__ == "__main__":
    json.dump([fetch(request) for request in json.load(sys.stdin)], sys.stdout)
