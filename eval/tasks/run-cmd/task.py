"""The exit code of a command."""

GROUP = "smallest"


def make(workspace, draw):
    name = f"{draw.word()}.sh"
    a, b = draw.randint(1000, 9999), draw.randint(1000, 9999)
    workspace.write(name, f"echo {draw.word()}\nexit $(({a} * {b} % 83 + 3))\n")
    return {"name": name, "code": a * b % 83 + 3}


def check(outcome):
    outcome.require_unchanged()
    outcome.require_number(outcome.values["code"])


def solve(workspace, values):
    return f"Its exit code is {values['code']}."


def spoil_code(workspace, values):
    return "Its exit code is 0."
