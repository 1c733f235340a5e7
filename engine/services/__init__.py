"""Base classes of the service APIs, one module each: `from engine.services.vision import Vision`."""
