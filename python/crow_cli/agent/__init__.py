"""Names of the Python versions before 1.0."""
