"""A file that is not there: the answer says so, and is not taken from a similar file."""

import re

GROUP = "explain"


def make(workspace, draw):
    name = draw.word()
    port = draw.randint(2000, 9999)
    workspace.write(f"deploy/{draw.word()}.toml", f"port = {port}\n")
    workspace.write("deploy/README.md", "A file for each service.\n")
    return {"name": name, "port": port}


def check(outcome):
    outcome.require_unchanged()
    outcome.require("unknown" in outcome.answer.lower(), "the answer is not `unknown`")
    outcome.require(not re.search(r"\d{2,}", outcome.answer), "the answer has a number")


def solve(workspace, values):
    return "unknown: there is no such file."


def spoil_by_other_file(workspace, values):
    return f"{values['port']}"


def spoil_by_both(workspace, values):
    return f"unknown, perhaps {values['port']}"
