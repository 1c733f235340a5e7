"""Base classes of the service APIs, one module each: `from runtime.services.discovery import DiscoveryService`."""
