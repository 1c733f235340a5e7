"""HTTP/1.1 connections with gRPC-Web calls, web pages and WebSockets."""
