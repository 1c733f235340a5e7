"""What the installation of a machine needs: its credentials, the newest agent for it, and a key for both."""

from __future__ import annotations

from dataclasses import replace

from msgspec import Struct

from cloud.domain.configurations import configurations
from cloud.domain.machines import machines
from cloud.domain.organizations import keys
from cloud.domain.organizations.keys import Grant
from cloud.domain.permissions import call_rules
from cloud.domain.releases.agent_report import KEPT
from cloud.services.agents.offers import CUSTOM, AgentOffers, section_of
from cloud.services.common import messages as m
from cloud.services.common.base import Service, guarded
from cloud.store.sql import Sql
from schema import ErrorKind, MachineError
from uplink.releases import AGENT, check_platform, normal_platform


class Credentials(Struct, frozen=True):
    """The credentials of a part."""

    id: str
    secret: str


class Installer(Struct, frozen=True):
    """The release of machine-agent that a part is to install."""

    version: str
    sha256: str  # hexadecimal
    path: str  # a link that needs no key, relative to the address of the cloud


@guarded(call_rules.INSTALLATION)
class InstallationService(Service):
    """A call about the installation of a machine. Not published."""

    async def install_part(self, part_id: str) -> Credentials:
        """Return the credentials of a part, for the computer on which it is installed."""
        secrets = await self.read(lambda sql: machines.secrets_of(sql, part_id))
        if not secrets:
            raise MachineError(
                "all secrets of this machine were deleted",
                kind=ErrorKind.PRECONDITION,
                remedy="create a new one for the part",
            )
        return Credentials(part_id, secrets[0][1])

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
                        "an owner of the organization publishes release files with `machine cloud releases upload` and "
                        "`promote`, or you copy a release file to the device and run it with --install"
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

    async def create_install_key(self, part_id: str) -> m.NewKey:
        """Create a key that is an owner of the part's machine and of nothing else. It is returned only once."""

        def work(sql: Sql) -> tuple[str, str]:
            part = machines.part(sql, part_id)
            owner = keys.organization_of(sql, self.author.name)
            name = f"installation of {part.machine}"[:60]
            return keys.create_key(sql, owner, name, [Grant("owner", "robot", part.machine_id)], self.now())

        return m.NewKey(*await self.write(work))
