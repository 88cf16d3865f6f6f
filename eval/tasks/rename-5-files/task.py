"""A function that five files name; a longer name that begins alike stays."""

import re

GROUP = "tests"


def make(workspace, draw):
    old, new = draw.word(), draw.word()
    a, b = draw.words(2)
    n = draw.randint(10, 99)
    workspace.write("core.py", f'def {old}(value):\n    """Adds {n}."""\n    return value + {n}\n\n\ndef {old}_twice(value):\n    return {old}({old}(value))\n')
    workspace.write(f"{a}.py", f"from core import {old}\n\n\ndef first(value):\n    return {old}(value) * 2\n")
    workspace.write(f"{b}.py", f"import core\n\n\ndef second(value):\n    return core.{old}(value) - core.{old}_twice(1)\n")
    workspace.write("main.py", f"from {a} import first\nfrom {b} import second\nfrom core import {old}\n\nprint(first(1), second(2), {old}(3))\n")
    workspace.write("docs.md", f"# Functions\n\n- `{old}(value)` adds {n}.\n- `{old}_twice(value)` does so twice.\n")
    output = f"{(1 + n) * 2} {2 + n - (1 + 2 * n)} {3 + n}"
    return {"old": old, "new": new, "files": ["core.py", f"{a}.py", f"{b}.py", "main.py", "docs.md"], "output": output}


def renamed(text, values):
    return re.sub(rf"\b{values['old']}\b", values["new"], text)


def check(outcome):
    values, workspace = outcome.values, outcome.workspace
    outcome.require_unchanged(*values["files"])
    for name in values["files"]:
        text = workspace.read(name)
        outcome.require(renamed(text, values) == text, f"{name} has the old name")
        outcome.require(values["new"] in text, f"{name} has not the new name")
    outcome.require(f"{values['old']}_twice" in workspace.read("core.py"), "the other function was renamed as well")
    output = workspace.run("python3", "main.py").stdout.strip()
    outcome.require(output == values["output"], f"main.py prints {output!r}, not {values['output']!r}")


def solve(workspace, values):
    for name in values["files"]:
        workspace.write(name, renamed(workspace.read(name), values))
    return "Renamed."


def spoil_docs(workspace, values):
    for name in values["files"][:-1]:
        workspace.write(name, renamed(workspace.read(name), values))
    return "Renamed."


def spoil_longer_name(workspace, values):
    for name in values["files"]:
        workspace.write(name, workspace.read(name).replace(values["old"], values["new"]))
    return "Renamed."
