"""Commands for modules, models and other archives in the registry of a cloud."""
