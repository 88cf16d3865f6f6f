"""A line at the end of a file."""

GROUP = "smallest"


def make(workspace, draw):
    name = f"{draw.word()}.md"
    text = f"# {draw.word()}\n\n" + "".join(f"- {word}\n" for word in draw.words(5))
    workspace.write(name, text)
    return {"name": name, "line": f"- {draw.word()}", "text": text}


def check(outcome):
    name, whole = outcome.values["name"], outcome.values["text"] + outcome.values["line"]
    outcome.require_unchanged(name)
    actual = outcome.workspace.read(name)
    outcome.require(actual in (whole, whole + "\n"), f"{name} ends with {actual[-60:]!r}")


def solve(workspace, values):
    workspace.write(values["name"], values["text"] + values["line"] + "\n")
    return "Appended."


def spoil_by_overwriting(workspace, values):
    workspace.write(values["name"], values["line"] + "\n")
    return "Appended."


def spoil_by_empty_line(workspace, values):
    workspace.write(values["name"], values["text"] + "\n" + values["line"] + "\n")
    return "Appended."
