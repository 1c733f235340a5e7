"""Setup of a computer: the credentials file of a part, and the commands to run."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import Response

from cloud.services.agents.agent_service import AgentService
from cloud.services.agents.installation import InstallationService, InstallState
from cloud.services.app import AppService
from cloud.services.common.base import Cloud
from cloud.services.organizations.authorities import AuthorityService
from cloud.values.author import Author
from cloud.web.common.site import author_of, render
from cloud.web.views.installing.qr_code import svg
from cloud.web.views.installing.reach import reachable
from rpc.access import CA_FILE, install_line, user_data
from rpc.network import outward
from schema import ErrorKind, MachineError

FILE = "machine.json"
_PLATFORMS: Final = ("linux/x86_64", "linux/aarch64")
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


@dataclass(frozen=True, slots=True)
class Stage:
    """How far an installation is: `css` and `word` of its state, and what that means."""

    css: str
    word: str
    text: str


def stage_of(info: InstallState, *, connected: bool) -> Stage:
    """Return the stage of an installation, from its newest code and whether the machine is connected."""
    if connected:
        return Stage("ready", "running", "The machine is connected.")
    if info.used is not None:
        return Stage("configuring", "connected", "A computer has used the line. It installs machine-agent now.")
    if info.ends is not None and not info.expired:
        ends = f"{info.ends:%Y-%m-%d %H:%M} UTC"
        return Stage("configuring", "waiting", f"Waiting for a computer to run the line, until {ends}.")
    return Stage("unconfigured", "no line", "There is no line in force. Get a new one.")


async def _has_agent(cloud: Cloud, author: Author, part: str) -> bool:
    """Return whether there is a release of machine-agent for the part, on any platform."""
    for platform in _PLATFORMS:
        try:
            await InstallationService(cloud, author).get_installer(part, platform)
        except MachineError as error:
            if error.kind is ErrorKind.NOT_FOUND:
                continue
        return True
    return False


async def install_page(
    cloud: Cloud, request: Request, machine: str, name: str, part: str, connected: bool, new: bool = False
) -> Response:
    """Render the installation of a part. A POST also creates a code, and shows the line that uses it; PERMISSION."""
    author = author_of(request)
    asked = address_of(request)
    address, warning = reachable(asked, cloud.links.base, outward())
    line = user_data_text = picture = sha256 = credentials = ""
    if request.method == "POST":
        authorities = (
            await AuthorityService(cloud, Author("", "")).list_authorities() if has_own_authority(cloud) else ""
        )
        code = await AgentService(cloud, author).create_install_code(part)
        sha256 = hashlib.sha256(authorities.encode()).hexdigest() if authorities else ""
        line = install_line(address, part, code.id, code.key, sha256)
        user_data_text = user_data(line)
    unreleased = bool(line) and not await _has_agent(cloud, author, part)
    here = f"{address}/machines/{part}/install"
    if not warning:
        picture = svg(here, "QR code of the address of this page")
    info = await InstallationService(cloud, author).get_install_state(part)
    if new:
        parts = await AppService(cloud, author).get_robot_parts(machine)
        secret = next((entry.secret for entry in parts if entry.id == part), "")
        credentials = json.dumps(credentials_of(cloud, request, part, secret), indent=2)
    return render(
        request,
        "install.html",
        machine=machine,
        part=part,
        name=name,
        new=new,
        line=line,
        recipe=base64.b64encode(user_data_text.encode()).decode(),
        picture=Markup(picture),
        here=here,
        warning=warning,
        unreleased=unreleased,
        moved=address if address != asked else "",
        stage=stage_of(info, connected=connected),
        sha256=sha256,
        secure=address.startswith("https://"),
        credentials=credentials,
        file=FILE,
        authority=CA_FILE if has_own_authority(cloud) else "",
        command=f"machine-server -config {FILE}",
        live=f"/live/machines/{part}/install",
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
