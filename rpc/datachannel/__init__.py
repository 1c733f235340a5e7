"""gRPC calls over WebRTC data channels: the envelopes of proto.rpc.webrtc.v1, a server and a client."""
