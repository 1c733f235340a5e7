"""Network management: links, addresses, routes, DNS, Wi-Fi, the provisioning hotspot and its portal.

Started by machine-agent. docs/design/netmgr.md describes the parts.
"""
