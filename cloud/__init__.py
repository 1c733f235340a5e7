"""machine-cloud: the self-hosted application. What each folder is for: docs/design/architecture.md, section 6."""
