"""What is explained to people about the network: on the command line and on the machine's page in the cloud. Pure."""

from __future__ import annotations

import msgspec

from netmgr.model.facts import Manager
from netmgr.model.network import Kind


class Statement(msgspec.Struct, frozen=True):
    """Sentence for people, and what they can do. Without secrets."""

    text: str
    remedy: str = ""
    """Empty if nothing needs to be done."""


class NotUsed(msgspec.Struct, frozen=True, kw_only=True):
    """Network that is not used, and why."""

    network: str
    """Label."""
    why: Statement


class InterfaceExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """What an interface does, and why."""

    interface: str
    kind: Kind
    manager: Manager
    """Program that configures it at present."""
    network: str = ""
    """Label of the network that was chosen; empty if there is none."""
    state: Statement
    not_used: tuple[NotUsed, ...] = ()
    """Every other network of this kind, those that come first at the beginning."""


class NetworkExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """Which networks are used, why not the others, and what happens next."""

    interfaces: tuple[InterfaceExplanation, ...] = ()
    not_used: tuple[NotUsed, ...] = ()
    """Networks that no interface of this computer can use."""
    next_step: str = ""
    """What happens next, and when."""
