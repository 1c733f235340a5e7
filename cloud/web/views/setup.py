"""Setup of a computer: the credentials file of a part, and the commands to run."""

from __future__ import annotations

import json

from starlette.requests import Request
from starlette.responses import Response

from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.web.common.site import author_of, render
from schema.errors import ErrorKind, MachineError

FILE = "machine.json"
CA_FILE = "machine-cloud-ca.pem"  # the name that /ca.pem suggests


async def setup_page(cloud: Cloud, request: Request, machine: str, *, part: str = "", new: bool = False) -> Response:
    """Render the credentials of a machine's main part, or of `part`. PERMISSION unless the caller is an owner."""
    service = AppService(cloud, author_of(request))
    record = await service.get_robot(machine)
    parts = await service.get_robot_parts(machine)
    chosen = next(
        (candidate for candidate in parts if candidate.id == part or (not part and candidate.main_part)), None
    )
    if chosen is None:
        raise MachineError("the machine has no such part", kind=ErrorKind.NOT_FOUND)
    if not chosen.secret:
        raise MachineError(
            "only owners may view the credentials of a machine", kind=ErrorKind.PERMISSION, remedy="use an owner's key"
        )
    address = f"{request.url.scheme}://{request.headers.get('host', '')}"
    credentials = {"id": chosen.id, "secret": chosen.secret, "app_address": address}
    own_authority = cloud.tls is not None and cloud.tls.own  # a certificate that computers do not trust by default
    if own_authority:
        credentials["ca_file"] = CA_FILE
    text = json.dumps({"cloud": credentials}, indent=2)
    return render(
        request,
        "setup.html",
        machine=record,
        part=chosen,
        credentials=text,
        file=FILE,
        authority=CA_FILE if own_authority else "",
        command=f"machine-server -config {FILE}",
        new=new,
    )
