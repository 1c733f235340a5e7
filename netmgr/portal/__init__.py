"""The pages and the gRPC API with which a person gets the device online, in its hotspot."""
