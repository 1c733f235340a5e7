"""Types of the machine document, one module for each section.

Public, in the order in which to read them:

* `section`: Base class of the typed parts of the machine document
* `auth`: Authentication of clients
* `cloud`: Identity of the machine in the cloud, from the credentials file and completed by the cloud
* `log`: Log levels and the rules that select them
* `network`: Listening address, TLS files, sessions and tunnels of the machine
* `packages`: Package entries: files that the cloud provides
* `remotes`: Remote entries: other machines whose resources this one uses
* `tracing`: Recording of spans of operations
* `jobs`: Job entries: scheduled calls of resource methods
* `modules`: Module entries: programs that provide additional models
* `resources`: Entries of `components` and `services`: name, model, attributes and dependencies of a resource
* `machine`: Decoder for the machine document
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schema.document.auth import API_KEY as API_KEY
    from schema.document.cloud import Cloud as Cloud
    from schema.document.jobs import ScheduledJob as ScheduledJob
    from schema.document.jobs import schedule_kind as schedule_kind
    from schema.document.log import LEVELS as LEVELS
    from schema.document.log import WORDS as WORDS
    from schema.document.log import LogRule as LogRule
    from schema.document.log import parse_level as parse_level
    from schema.document.machine import CLOUD_KEYS as CLOUD_KEYS
    from schema.document.machine import BrokenEntry as BrokenEntry
    from schema.document.machine import Decoded as Decoded
    from schema.document.machine import MachineDocument as MachineDocument
    from schema.document.machine import decode_document as decode_document
    from schema.document.machine import decode_document_value as decode_document_value
    from schema.document.machine import default_services as default_services
    from schema.document.modules import Module as Module
    from schema.document.modules import ModuleLimits as ModuleLimits
    from schema.document.network import DEFAULT_BIND_ADDRESS as DEFAULT_BIND_ADDRESS
    from schema.document.network import MANAGED_BIND_ADDRESS as MANAGED_BIND_ADDRESS
    from schema.document.network import Network as Network
    from schema.document.network import TunnelEndpoint as TunnelEndpoint
    from schema.document.network import check_address as check_address
    from schema.document.packages import PackageSource as PackageSource
    from schema.document.remotes import Remote as Remote
    from schema.document.resources import RESOURCE_TYPES as RESOURCE_TYPES
    from schema.document.resources import ResourceEntry as ResourceEntry
    from schema.document.resources import decode_resource as decode_resource
    from schema.document.section import Section as Section
    from schema.document.tracing import Tracing as Tracing
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "section": ["Section"],
            "auth": ["API_KEY"],
            "cloud": ["Cloud"],
            "log": ["LEVELS", "WORDS", "LogRule", "parse_level"],
            "network": ["DEFAULT_BIND_ADDRESS", "MANAGED_BIND_ADDRESS", "Network", "TunnelEndpoint", "check_address"],
            "packages": ["PackageSource"],
            "remotes": ["Remote"],
            "tracing": ["Tracing"],
            "jobs": ["ScheduledJob", "schedule_kind"],
            "modules": ["Module", "ModuleLimits"],
            "resources": ["RESOURCE_TYPES", "ResourceEntry", "decode_resource"],
            "machine": [
                "CLOUD_KEYS",
                "BrokenEntry",
                "Decoded",
                "MachineDocument",
                "decode_document",
                "decode_document_value",
                "default_services",
            ],
        },
    )
