"""Write docs/reference/cloud-api.md from the published API, the cloud's services and cloud/services/unbuilt.py."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "cloud-api.md"
REFUSED = (  # published services without a class here: the module of their messages, below viam.gen
    ("viam.app.datapipelines.v1.DataPipelinesService", "app.datapipelines.v1.data_pipelines_pb2"),
    ("viam.app.v1.BillingService", "app.v1.billing_pb2"),
    ("viam.app.v1.EndUserService", "app.v1.end_user_pb2"),
    ("viam.app.cloudslam.v1.CloudSLAMService", "app.cloudslam.v1.cloud_slam_pb2"),
)

HEAD = """\
# Published API of the cloud

<!-- Written by tools/gen_cloud_api_reference.py; `make generate` brings it up to date. -->

This page lists every published call of a cloud, and what it does in `machine-cloud`. A call that is not supported fails
with UNIMPLEMENTED and the explanation given here. If the role of a key is too low, the call fails with
PERMISSION_DENIED and names the role; objects for which a key has no role are NOT_FOUND.

Services of the package `machine.cloud.v1` are not published but our own; their messages are in
`machine/cloud/v1/cloud.proto` in the folder of this page. `POST /machine.cloud.v1.SERVICE/CALL` with the request as its
body makes a call over [HTTP with JSON](network.md#http-and-json).

Each method of `AppClient` and `DataClient` of the official SDKs is tested with this cloud: in Python, and in TypeScript
in Node, over gRPC and gRPC-Web, and in a page in Chromium. `fetch` cannot send a stream, so `fileUpload` of the
TypeScript SDK needs a gRPC transport; without it, use `binaryDataCaptureUpload` for data that fits in one message.
`delete_tabular_data_by_filter` of the Python SDK makes no call; use `delete_tabular_data`.
"""


def page() -> str:
    """Return the text of the page."""
    from cloud.services.target import SERVICES

    parts = [HEAD]
    for service in SERVICES:
        parts += _section(service)
    parts.append("## Services that are not here\n\n| service | calls | refused with |\n|---|---|---|")
    parts += _refused()
    return "\n".join(parts) + "\n"


def _section(service: str) -> Iterator[str]:
    from cloud.services.target import SERVICES
    from cloud.services.unbuilt import reason_unsupported
    from rpc.api.methods import methods_of
    from rpc.api.table import SERVICES as PUBLISHED

    served, refused = [], []
    for name, method in methods_of(PUBLISHED[service]).items():
        call = method.path.rpartition("/")[2]
        implementation = getattr(SERVICES[service], name, None)
        if implementation is not None:
            served.append(f"| `{call}` | {_line(inspect.getdoc(implementation))} |")
        else:
            text = reason_unsupported(method.path, frozenset(SERVICES)) or ""
            refused.append(f"| `{call}` | {_line(text.removeprefix(f'{call}: '))} |")
    yield f"## {service}\n\n| call | what it does |\n|---|---|"
    yield from served
    yield ""
    if refused:
        yield "| call | refused with |\n|---|---|"
        yield from refused
        yield ""


def _refused() -> Iterator[str]:
    from cloud.services.target import SERVICES
    from cloud.services.unbuilt import reason_unsupported

    for service, module in REFUSED:
        messages = importlib.import_module(f"viam.gen.{module}")
        calls = [method.name for method in messages.DESCRIPTOR.services_by_name[service.rpartition(".")[2]].methods]
        text = reason_unsupported(f"/{service}/{calls[0]}", frozenset(SERVICES)) or ""
        yield f"| `{service}` | {len(calls)} | {_line(text.removeprefix(f'{calls[0]}: '))} |"


def _line(text: str | None) -> str:
    """Return the first paragraph as the text of a table cell."""
    return " ".join((text or "").partition("\n\n")[0].split()).replace("|", "\\|")
