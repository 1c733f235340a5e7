"""`machine cloud members`: manages members of an organization, and invitations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from command.cloud.group import APP, with_client
from command.cloud.organization import ORGANIZATION, missing_resource, organization_of
from command.cloud.times import local
from command.groups import Commands
from command.output import json_option

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rpc.api import ApiClient

_QUIET: Final = click.option("-q", "--quiet", is_flag=True, help="Print only addresses, one per line.")
KINDS: Final = ("organization", "location", "robot")


@click.group(cls=Commands)
def members() -> None:
    """Manage the members of an organization and their invitations. MEMBER is an email address or an id."""


@members.command("ls")
@ORGANIZATION
@json_option
@_QUIET
@with_client
async def list_command(client: ApiClient, organization: str, as_json: bool, quiet: bool) -> None:
    """List members and invitations."""
    from support.text.terminal import one_line, table

    owner = (await organization_of(client, organization))["id"]
    listing = await client.call(APP, "", "list_organization_members", organization_id=owner)
    if as_json:
        for state in ("members", "invites"):
            click.echo("".join(f"{one_line({'state': state[:-1], **person})}\n" for person in listing[state]), nl=False)
        return
    rows = [
        *(
            [member["emails"][0], "member", _day(member["date_added"]), "", member["user_id"]]
            for member in listing["members"]
        ),
        *(
            [invite["email"], "invited", _day(invite["created_on"]), _roles(invite), ""]
            for invite in listing["invites"]
        ),
    ]
    if quiet:
        click.echo("".join(f"{row[0]}\n" for row in rows), nl=False)
    else:
        click.echo("\n".join(table(["ADDRESS", "STATE", "SINCE", "INVITED AS", "ID"], rows)))


@members.command()
@click.argument("email")
@click.option("--role", type=click.Choice(["owner", "operator"]), default="operator", show_default=True)
@click.option("--kind", type=click.Choice(KINDS), default="organization", show_default=True)
@click.option("--at", "subject", default="", help="Id of the organization, location or machine.")
@click.option("--no-mail", is_flag=True, help="Print the link instead of mailing it.")
@ORGANIZATION
@json_option
@click.option("-q", "--quiet", is_flag=True, help="Print only the link, if it is not mailed.")
@with_client
async def invite(
    client: ApiClient, /, email: str, organization: str, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Invite EMAIL. The cloud mails the link; if it has no mail server, the link is printed, only once."""
    owner = (await organization_of(client, organization))["id"]
    kind, subject = options["kind"], options["subject"]
    if not subject and kind != "organization":
        raise missing_resource(kind)
    grant = {
        "authorization_type": "role",
        "authorization_id": f"{kind}_{options['role']}",
        "resource_type": kind,
        "resource_id": subject or owner,
    }
    await client.call(
        APP,
        "",
        "create_organization_invite",
        organization_id=owner,
        email=email,
        authorizations=[grant],
        send_email_invite=not options["no_mail"],
    )
    await _deliver_link(client, owner, email, as_json=as_json, quiet=quiet, mail=not options["no_mail"])


@members.command()
@click.argument("email")
@click.option("--no-mail", is_flag=True, help="Print the link instead of mailing it.")
@ORGANIZATION
@json_option
@click.option("-q", "--quiet", is_flag=True, help="Print only the link, if it is not mailed.")
@with_client
async def resend(client: ApiClient, email: str, organization: str, no_mail: bool, as_json: bool, quiet: bool) -> None:
    """Invite EMAIL again with a new link, for another week. The old link is invalid then."""
    owner = (await organization_of(client, organization))["id"]
    request = {"organization_id": owner, "email": email, "send_email_invite": not no_mail}
    await client.call(APP, "", "resend_organization_invite", **request)
    await _deliver_link(client, owner, email, as_json=as_json, quiet=quiet, mail=not no_mail)


@members.command()
@click.argument("email")
@ORGANIZATION
@with_client
async def withdraw(client: ApiClient, email: str, organization: str) -> None:
    """Withdraw the invitation of EMAIL. Its link is invalid immediately."""
    owner = (await organization_of(client, organization))["id"]
    await client.call(APP, "", "delete_organization_invite", organization_id=owner, email=email)
    click.echo("withdrawn")


@members.command()
@click.argument("member")
@ORGANIZATION
@with_client
async def remove(client: ApiClient, member: str, organization: str) -> None:
    """Delete all keys of MEMBER in the organization. They are invalid immediately."""
    owner = (await organization_of(client, organization))["id"]
    await client.call(APP, "", "delete_organization_member", organization_id=owner, user_id=member)
    click.echo("removed")


async def _deliver_link(client: ApiClient, owner: str, email: str, *, as_json: bool, quiet: bool, mail: bool) -> None:
    """Report that the link is mailed, or print it."""
    from rpc.api import INVITATIONS
    from support.text.terminal import one_line

    if mail and (await client.call(INVITATIONS, "", "list_invites", organization_id=owner))["mails"]:
        if not quiet:
            click.echo(one_line({"email": email, "link": None}) if as_json else f"the link was mailed to {email}")
        return
    link = await client.call(INVITATIONS, "", "create_invite_link", organization_id=owner, email=email)
    if as_json or quiet:
        click.echo(one_line({"email": email, "link": link}) if as_json else link)
    else:
        click.echo(f"{link}\nSend this link to {email}. It can be used once, within a week, and is shown only once.")


def _day(moment: Any) -> str:
    return local(moment, seconds=False)


def _roles(invite: Mapping[str, Any]) -> str:
    return ", ".join(f"{grant['authorization_id']} {grant['resource_id']}" for grant in invite["authorizations"])
