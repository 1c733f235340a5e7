"""Setup of a computer: the credentials file of a part, and the commands to run."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from cloud.services.agents.installation import InstallationService
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.organizations.authorities import AuthorityService
from cloud.values.author import Author
from cloud.web.common.site import author_of, render
from rpc.access import CA_FILE, install_line
from schema import ErrorKind, MachineError

FILE = "machine.json"
_HOST: Final = re.compile(r"[A-Za-z0-9.-]+(:[0-9]+)?|\[[0-9A-Fa-f:.]+\](:[0-9]+)?")


def has_own_authority(cloud: Cloud) -> bool:
    """Return whether the cloud has a certificate that computers do not trust by default."""
    return cloud.tls is not None and cloud.tls.own


def address_of(request: Request) -> str:
    """Return the address at which the caller reaches the cloud. INVALID if the header `host` is not a host name."""
    host = request.headers.get("host", "")
    if not _HOST.fullmatch(host):
        raise MachineError("the header `host` is not the name of a host", kind=ErrorKind.INVALID)
    return f"{request.url.scheme}://{host}"


def credentials_of(cloud: Cloud, request: Request, part: str, secret: str) -> dict[str, dict[str, str]]:
    """Return the content of the credentials file of a part."""
    credentials = {"id": part, "secret": secret, "app_address": address_of(request)}
    if has_own_authority(cloud):
        credentials["ca_file"] = CA_FILE
    return {"cloud": credentials}


async def install_page(cloud: Cloud, request: Request, machine: str, name: str, part: str) -> Response:
    """Create a key for the installation of a part, and render the line that uses it. PERMISSION, unless an owner."""
    author, address = author_of(request), address_of(request)
    authorities = await AuthorityService(cloud, Author("", "")).list_authorities() if has_own_authority(cloud) else ""
    key = await InstallationService(cloud, author).create_install_key(part)
    sha256 = hashlib.sha256(authorities.encode()).hexdigest() if authorities else ""
    return render(
        request,
        "install.html",
        machine=machine,
        name=name,
        line=install_line(address, part, key.id, key.key, sha256),
        sha256=sha256,
        secure=address.startswith("https://"),
    )


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
    own_authority = has_own_authority(cloud)
    text = json.dumps(credentials_of(cloud, request, chosen.id, chosen.secret), indent=2)
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
