"""The number of files with an extension, in all directories."""

GROUP = "smallest"


def make(workspace, draw):
    extension = draw.choice(["csv", "ini", "log", "sql"])
    n = draw.randint(4, 8)
    directories = ["", "data/", "data/old/", "more/"]
    for i in range(n):
        workspace.write(f"{directories[i % 4]}{draw.word()}.{extension}", f"{i}\n")
    for i in range(3):
        workspace.write(f"{directories[i]}{draw.word()}.txt", f"{extension}\n")
    workspace.write(f"data/{draw.word()}.{extension}x", "other\n")
    return {"extension": extension, "n": n}


def check(outcome):
    outcome.require_unchanged()
    outcome.require_number(outcome.values["n"])


def solve(workspace, values):
    return f"There are {values['n']} files."


def spoil_count(workspace, values):
    return f"There are {values['n'] + 1} files."
