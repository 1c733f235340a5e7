"""The section `agent` of the configuration: its records, and how documents are read to them. Pure.

Public, in the order in which to read them:

* `records`: Records of the settings: what the agent does, with the defaults that are built in
* `versions`: URLs of releases, as logs and reports show them
* `reading`: Reading of the settings from the defaults file of the manufacturer and from the cloud
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schema.agent.reading import check_settings as check_settings
    from schema.agent.reading import read_settings as read_settings
    from schema.agent.records import AdditionalNetwork as AdditionalNetwork
    from schema.agent.records import AdvancedSettings as AdvancedSettings
    from schema.agent.records import EnterpriseAccount as EnterpriseAccount
    from schema.agent.records import MaintenanceWindow as MaintenanceWindow
    from schema.agent.records import NetworkConfiguration as NetworkConfiguration
    from schema.agent.records import Settings as Settings
    from schema.agent.records import SystemConfiguration as SystemConfiguration
    from schema.agent.records import VersionControl as VersionControl
    from schema.agent.versions import shown_url as shown_url
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "records": [
                "AdditionalNetwork",
                "AdvancedSettings",
                "EnterpriseAccount",
                "MaintenanceWindow",
                "NetworkConfiguration",
                "Settings",
                "SystemConfiguration",
                "VersionControl",
            ],
            "versions": ["shown_url"],
            "reading": ["check_settings", "read_settings"],
        },
    )
