"""What the installation of a machine needs: its credentials, the newest agent for it, and a key for both."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from msgspec import Struct

from cloud.domain.configurations import configurations
from cloud.domain.machines import install_codes, machines
from cloud.domain.permissions import audit
from cloud.domain.permissions.access import ObjectKind, Role, require
from cloud.domain.permissions.rules import allow, home_owner, machine, operator, public
from cloud.domain.releases.agent_report import KEPT
from cloud.services.agents.offers import CUSTOM, AgentOffers, section_of
from cloud.services.common.base import Service, guarded
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError
from uplink.releases import AGENT, check_platform, normal_platform


class PartCredentials(Struct, frozen=True):
    """The credentials of a part."""

    id: str
    secret: str


class Installer(Struct, frozen=True):
    """The release of machine-agent that a part is to install."""

    version: str
    sha256: str  # hexadecimal
    path: str  # a link that needs no key, relative to the address of the cloud


class InstallState(Struct, frozen=True):
    """The newest code of a part: when it ends, and when it was used. Without a code, `ends` is None."""

    ends: datetime | None = None
    used: datetime | None = None
    expired: bool = False


def _without_secrets() -> MachineError:
    return MachineError(
        "all secrets of this machine were deleted",
        kind=ErrorKind.PRECONDITION,
        remedy="create a new one for the part",
    )


@guarded
class InstallationService(Service):
    """A call about the installation of a machine. Not published."""

    @allow(home_owner(ObjectKind.PART, "part_id"))
    async def install_part(self, part_id: str) -> PartCredentials:
        """Return the credentials of a part, for the computer on which it is installed."""
        secrets = await self.read(lambda sql: machines.secrets_of(sql, part_id))
        if not secrets:
            raise _without_secrets()
        return PartCredentials(part_id, secrets[0][1])

    @allow(machine("part_id"))
    async def get_installer(self, part_id: str, platform: str) -> Installer:
        """Return the release of machine-agent that is offered to a part on `platform`, such as linux/aarch64.

        INVALID for a platform without releases; NOT_FOUND if nothing is offered; PRECONDITION if the configuration
        names a URL, whose content the cloud does not know.
        """
        platform = normal_platform(platform)
        try:
            check_platform(platform)
        except ValueError as error:
            raise MachineError(str(error), kind=ErrorKind.INVALID) from None

        def work(sql: Sql) -> Installer:
            part = machines.part(sql, part_id)
            part = replace(part, reported={**part.reported, "platform": platform})
            section = section_of(configurations.resolved(sql, part_id), "agent")
            offers = AgentOffers(sql, self.cloud.links, self.now(), part, section)
            offer = offers.of(AGENT)
            if offer is None and (problem := offers.problem(AGENT)) is not None:
                text = f"{problem.path} offers no machine-agent: {problem.message.removesuffix(f'; {KEPT}')}"
                raise MachineError(text, kind=ErrorKind.NOT_FOUND, remedy=problem.remedy)
            if offer is None:
                raise MachineError(
                    f"this cloud has no release of machine-agent for {platform}",
                    kind=ErrorKind.NOT_FOUND,
                    remedy=(
                        "an owner of the organization presses Import on the page Releases, or publishes files with "
                        "`machine cloud releases upload` and `promote`; or you copy a release file to the device, and "
                        "run it with --install"
                    ),
                )
            if offer.version == CUSTOM:
                raise MachineError(
                    "the configuration of this machine names a URL for machine-agent, whose content is not verified",
                    kind=ErrorKind.PRECONDITION,
                    remedy="copy the release file to the device and run it with --install",
                )
            return Installer(offer.version, offer.sha256.hex(), offer.url.removeprefix(self.cloud.links.base))

        return await self.read(work)

    @allow(public("the code is the credential; it is void after its use"))
    async def redeem_install_code(self, code_id: str, secret: str, nonce: str) -> PartCredentials:
        """Return the credentials of the part of a code, which is void then; see `install_codes.claim`.

        PRECONDITION also if the author of the code is no longer an owner of the machine.
        """

        def work(sql: Sql) -> PartCredentials:
            claimed = install_codes.claim(sql, code_id, secret, nonce, self.now())
            try:
                place = require(sql, claimed.author, Role.OWNER, ObjectKind.PART, claimed.part, home=True)
            except MachineError:
                raise MachineError(
                    "the person who created the line is no longer an owner of the machine",
                    kind=ErrorKind.PRECONDITION,
                    remedy="have an owner get a new line on the machine's page",
                ) from None
            secrets = machines.secrets_of(sql, claimed.part)
            if not secrets:
                raise _without_secrets()
            if not claimed.again:
                detail = {"of": "part", "code": claimed.id}
                audit.note(sql, place.organization, claimed.author, "install_part", claimed.part, detail, self.now())
            return PartCredentials(claimed.part, secrets[0][1])

        return await self.write(work)

    @allow(operator(ObjectKind.PART, "part_id"))
    async def get_install_state(self, part_id: str) -> InstallState:
        """Return how far the installation of a part is."""

        def work(sql: Sql) -> InstallState:
            code = install_codes.state_of(sql, part_id)
            return InstallState() if code is None else InstallState(code.ends, code.used, code.ends <= self.now())

        return await self.read(work)
