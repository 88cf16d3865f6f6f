"""A new file with one line."""

GROUP = "smallest"


def make(workspace, draw):
    workspace.write("readme.txt", f"{draw.word()}\n")
    return {"name": f"{draw.word()}.txt", "line": " ".join(draw.words(4))}


def check(outcome):
    name, line = outcome.values["name"], outcome.values["line"]
    outcome.require_unchanged(name)
    outcome.require(outcome.workspace.read_bytes(name) in (line.encode(), f"{line}\n".encode()), f"{name} has not the line")


def solve(workspace, values):
    workspace.write(values["name"], values["line"] + "\n")
    return "Done."


def spoil_content(workspace, values):
    workspace.write(values["name"], f"`{values['line']}`\n")
    return "Done."


def spoil_by_second_file(workspace, values):
    workspace.write("readme.txt", "changed\n")
    return solve(workspace, values)
