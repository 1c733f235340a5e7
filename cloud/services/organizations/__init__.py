"""Published calls for organizations, locations, members, keys and invitations."""
