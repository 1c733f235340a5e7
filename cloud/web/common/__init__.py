"""Foundation of all pages: templates, forms, errors, and live connections."""
