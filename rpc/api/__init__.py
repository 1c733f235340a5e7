"""Adapter between Python classes and the published protobuf API, driven by protobuf descriptors.

`rpc.api.server.router` serves APIs, `rpc.api.client` calls them, and `rpc.api.messages` loads the messages. All parts
are loaded on first use.
"""
