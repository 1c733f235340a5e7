"""machine-agent as a service of a guest: releases, its installation, and power cuts during its updates."""
