"""One of two changed files is committed."""

GROUP = "git"


def make(workspace, draw):
    names = [f"{draw.word()}.txt" for _ in range(3)]
    for name in names:
        workspace.write(name, f"{draw.word()}\n")
    workspace.start_repository()
    for name in names[:2]:
        workspace.write(name, f"{draw.word()}\n")
    start = workspace.git("rev-parse", "HEAD").strip()
    return {"name": names[0], "other": names[1], "message": f"Change {draw.word()}", "start": start}


def check(outcome):
    values, workspace = outcome.values, outcome.workspace
    outcome.require_unchanged()
    commits = workspace.git("log", "--format=%s", f"{values['start']}..HEAD").splitlines()
    outcome.require(commits == [values["message"]], f"the commits are {commits}")
    paths = workspace.git("diff", "--name-only", values["start"], "HEAD").split()
    outcome.require(paths == [values["name"]], f"the commit has {paths}")
    status = workspace.git("status", "--porcelain").splitlines()
    outcome.require([line[3:] for line in status] == [values["other"]], f"the status is {status}")


def solve(workspace, values):
    workspace.git("commit", "--quiet", "--message", values["message"], "--", values["name"])
    return "Committed."


def spoil_by_all(workspace, values):
    workspace.git("commit", "--quiet", "--all", "--message", values["message"])
    return "Committed."


def spoil_by_restoring(workspace, values):
    solve(workspace, values)
    workspace.git("checkout", "--quiet", "--", values["other"])
    return "Committed."
