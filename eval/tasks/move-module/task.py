"""A module that moves, with its imports."""

GROUP = "tests"


def make(workspace, draw):
    one, two = draw.words(2)
    workspace.write("lib/__init__.py", "")
    workspace.write("lib/numbers.py", "def double(value):\n    return value * 2\n")
    workspace.write("helpers.py", "from lib.numbers import double\n\n\ndef shout(text):\n    return text.upper() * double(1)\n")
    workspace.write("main.py", f'from helpers import shout\n\nprint(shout("{one}"))\n')
    workspace.write("report.py", f'import helpers as tools\nfrom lib import numbers\n\nprint(tools.shout("{two}"), numbers.double(4))\n')
    return {"one": one, "two": two}


def check(outcome):
    values, workspace = outcome.values, outcome.workspace
    outcome.require_unchanged("helpers.py", "main.py", "report.py", "lib/text.py", "lib/__init__.py")
    outcome.require(not workspace.file("helpers.py").exists(), "helpers.py is still there")
    outcome.require("def shout" in workspace.read("lib/text.py"), "lib/text.py has not the function")
    for name, expected in (("main.py", values["one"].upper() * 2), ("report.py", f"{values['two'].upper() * 2} 8")):
        done = workspace.run("python3", name)
        outcome.require(done.stdout.strip() == expected, f"{name} prints {done.stdout!r}{done.stderr[-200:]}")


def solve(workspace, values):
    workspace.write("lib/text.py", workspace.read("helpers.py"))
    workspace.file("helpers.py").unlink()
    workspace.replace("main.py", "from helpers", "from lib.text")
    workspace.replace("report.py", "import helpers as tools", "from lib import text as tools")
    return "Moved."


def spoil_by_copy(workspace, values):
    workspace.write("lib/text.py", workspace.read("helpers.py"))
    return "Moved."


def spoil_one_import(workspace, values):
    solve(workspace, values)
    workspace.replace("report.py", "from lib import text as tools", "import helpers as tools")
    return "Moved."
