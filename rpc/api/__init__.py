"""One adapter between Python classes and the published protobuf API, driven by its descriptors.

`rpc.api.router` serves, `rpc.api.client` calls, `rpc.api.messages` holds the messages. Nothing is loaded until it is
used.
"""
