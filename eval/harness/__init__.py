"""Runs agents on tasks, checks what they did, and counts what it cost. See docs/dev/eval.md."""
