"""HTTP/2 connections, streams and flow control for servers and clients."""
