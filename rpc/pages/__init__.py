"""Common parts of all web pages: style, static files, security headers, text formatting and graph drawings."""
