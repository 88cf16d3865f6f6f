"""Tests that pass, and that fail for wrong implementations."""

GROUP = "tests"

RIGHT = '''def clamp(value, low, high):
    """Returns the value, or the end of the range that it is beyond. Raises ValueError if low is above high."""
    if low > high:
        raise ValueError("low is above high")
    return min(max(value, low), high)
'''

MUTANTS = {
    "below": ("max(value, low)", "value"),
    "above": ("min(max(value, low), high)", "max(value, low)"),
    "inside": ("return min(max(value, low), high)", "return low if value < high else high"),
}


def make(workspace, draw):
    name = draw.word()
    workspace.write(f"{name}.py", RIGHT)
    return {"name": name}


def check(outcome):
    name, workspace = outcome.values["name"], outcome.workspace
    outcome.require_unchanged(f"test_{name}.py")
    done = workspace.run("python3", "-m", "unittest", f"test_{name}")
    outcome.require(done.returncode == 0 and "Ran 0 tests" not in done.stderr, f"the tests fail: {done.stderr[-300:]}")
    for mutant, (old, new) in MUTANTS.items():
        workspace.write(f"{name}.py", RIGHT.replace(old, new))
        done = workspace.run("python3", "-m", "unittest", f"test_{name}")
        outcome.require(done.returncode != 0, f"no test fails when values {mutant} are wrong")


def solve(workspace, values):
    name = values["name"]
    workspace.write(
        f"test_{name}.py",
        f"""import unittest

from {name} import clamp


class ClampTest(unittest.TestCase):
    def test_values(self):
        for value, expected in ((0, 2), (2, 2), (3, 3), (5, 5), (9, 5)):
            self.assertEqual(clamp(value, 2, 5), expected)
""",
    )
    return "Added."


def spoil_above(workspace, values):
    solve(workspace, values)
    workspace.replace(f"test_{values['name']}.py", ", (9, 5)", "")
    return "Added."


def spoil_by_empty_test(workspace, values):
    workspace.write(f"test_{values['name']}.py", "import unittest\n\n\nclass ClampTest(unittest.TestCase):\n    def test_nothing(self):\n        pass\n")
    return "Added."
