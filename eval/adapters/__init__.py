"""Crow in the harnesses of others; see docs/dev/eval.md."""
