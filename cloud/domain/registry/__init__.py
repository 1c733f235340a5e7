"""The registry: modules, models and other packages, their versions, and which of them a machine gets."""
