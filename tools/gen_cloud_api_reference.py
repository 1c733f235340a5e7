"""Writes docs/reference/cloud-api.md from the published API, the cloud's services and cloud/unbuilt.py.

python tools/gen_cloud_api_reference.py          # write it
python tools/gen_cloud_api_reference.py --check  # exit 1 if it is not current
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "cloud-api.md"
REFUSED = (  # services that are published and have no class here: module of their messages below viam.gen
    ("viam.app.datapipelines.v1.DataPipelinesService", "app.datapipelines.v1.data_pipelines_pb2"),
    ("viam.app.mltraining.v1.MLTrainingService", "app.mltraining.v1.ml_training_pb2"),
    ("viam.app.v1.BillingService", "app.v1.billing_pb2"),
    ("viam.app.v1.EndUserService", "app.v1.end_user_pb2"),
    ("viam.app.cloudslam.v1.CloudSLAMService", "app.cloudslam.v1.cloud_slam_pb2"),
    ("proto.rpc.webrtc.v1.SignalingService", "proto.rpc.webrtc.v1.signaling_pb2"),
)

HEAD = """\
# What of the published API the cloud serves

<!-- Written by tools/gen_cloud_api_reference.py; `python tools/gen_cloud_api_reference.py` brings it up to date. -->

Every published call of a cloud, and what `machine-cloud` makes of it. A call that is refused answers UNIMPLEMENTED with
the sentence that stands here. A key whose role is too low is answered with PERMISSION_DENIED, naming the role; what a
key cannot see at all is NOT_FOUND.

Each method of `AppClient` and `DataClient` of the official SDKs is tested against this cloud: in Python, and in
TypeScript in Node, by gRPC and by gRPC-Web, and in a page of Chromium. `fetch` cannot send a stream, so `fileUpload` of
the TypeScript SDK needs a gRPC transport; without it, `binaryDataCaptureUpload` takes what fits into one message.
`delete_tabular_data_by_filter` of the Python SDK calls nobody; use `delete_tabular_data`.
"""


def main() -> int:
    """Write the page, or with `--check` compare it."""
    text = page()
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != text:
            print(f"{PAGE} is not current; run python tools/gen_cloud_api_reference.py")
            return 1
        return 0
    PAGE.write_text(text)
    return 0


def page() -> str:
    """The whole page."""
    from cloud.target import SERVICES

    parts = [HEAD]
    for service in SERVICES:
        parts += _section(service)
    parts.append("## Services that are not here\n\n| service | calls | refused with |\n|---|---|---|")
    parts += _refused()
    return "\n".join(parts) + "\n"


def _section(service: str) -> Iterator[str]:
    from cloud.target import SERVICES
    from cloud.unbuilt import sentence
    from rpc.api.methods import methods_of
    from rpc.api.table import SERVICES as PUBLISHED

    served, refused = [], []
    for name, method in methods_of(PUBLISHED[service]).items():
        call = method.path.rpartition("/")[2]
        found = getattr(SERVICES[service], name, None)
        if found is not None:
            served.append(f"| `{call}` | {_line(inspect.getdoc(found))} |")
        else:
            text = sentence(method.path, frozenset(SERVICES)) or ""
            refused.append(f"| `{call}` | {_line(text.removeprefix(f'{call}: '))} |")
    yield f"## {service}\n\n| call | what it does |\n|---|---|"
    yield from served
    yield ""
    if refused:
        yield "| call | refused with |\n|---|---|"
        yield from refused
        yield ""


def _refused() -> Iterator[str]:
    from cloud.target import SERVICES
    from cloud.unbuilt import sentence

    for service, module in REFUSED:
        messages = importlib.import_module(f"viam.gen.{module}")
        calls = [method.name for method in messages.DESCRIPTOR.services_by_name[service.rpartition(".")[2]].methods]
        text = sentence(f"/{service}/{calls[0]}", frozenset(SERVICES)) or ""
        yield f"| `{service}` | {len(calls)} | {_line(text.removeprefix(f'{calls[0]}: '))} |"


def _line(text: str | None) -> str:
    """The first paragraph, as a cell."""
    return " ".join((text or "").partition("\n\n")[0].split()).replace("|", "\\|")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    raise SystemExit(main())
