"""Authentication, roles, access to captured data, and the audit log."""
