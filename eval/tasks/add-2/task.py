"""The sum of two numbers, and no file is touched."""

GROUP = "smallest"


def make(workspace, draw):
    workspace.write("notes.txt", f"{draw.word()} {draw.word()}\n")
    a, b = draw.randint(1000, 4999), draw.randint(1000, 4999)
    return {"a": a, "b": b}


def check(outcome):
    a, b = outcome.values["a"], outcome.values["b"]
    outcome.require_unchanged()
    outcome.require_number(a + b, a, b)


def solve(workspace, values):
    return f"{values['a'] + values['b']}"


def spoil_sum(workspace, values):
    return f"{values['a'] + values['b'] + 1}"


def spoil_by_several_answers(workspace, values):
    return f"{values['a'] + values['b']} or {values['a'] + values['b'] + 1}"


def spoil_by_file(workspace, values):
    workspace.write("sum.txt", solve(workspace, values))
    return solve(workspace, values)
