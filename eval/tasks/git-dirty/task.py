"""A commit on a new branch beside a change that belongs to another person."""

GROUP = "git"


def make(workspace, draw):
    notes = f"{draw.word()}.md"
    workspace.write("version.txt", "1.4.2\n")
    workspace.write(notes, f"# {draw.word()}\n\nold\n")
    workspace.start_repository()
    workspace.write(notes, f"# {draw.word()}\n\n{draw.word()}\n")
    start = workspace.git("rev-parse", "HEAD").strip()
    return {"branch": draw.word(), "version": f"1.{draw.randint(5, 40)}.0", "notes": notes, "start": start}


def check(outcome):
    values, workspace = outcome.values, outcome.workspace
    outcome.require_unchanged("version.txt")
    branch = workspace.git("branch", "--show-current").strip()
    outcome.require(branch == values["branch"], f"the branch is {branch!r}")
    outcome.require(workspace.git("rev-parse", "main").strip() == values["start"], "main has moved")
    paths = workspace.git("diff", "--name-only", values["start"], "HEAD").split()
    outcome.require(paths == ["version.txt"], f"the commits of the branch have {paths}")
    version = workspace.git("show", "HEAD:version.txt").strip()
    outcome.require(version == values["version"], f"the version is {version!r}")
    status = [line[3:] for line in workspace.git("status", "--porcelain").splitlines()]
    outcome.require(status == [values["notes"]], f"not committed are {status}")


def solve(workspace, values):
    workspace.git("checkout", "--quiet", "-b", values["branch"])
    workspace.write("version.txt", values["version"] + "\n")
    workspace.git("commit", "--quiet", "--message", "Change the version", "--", "version.txt")
    return "Committed."


def spoil_by_all(workspace, values):
    workspace.git("checkout", "--quiet", "-b", values["branch"])
    workspace.write("version.txt", values["version"] + "\n")
    workspace.commit_all("Change the version")
    return "Committed."


def spoil_by_stash(workspace, values):
    workspace.git("stash", "--quiet")
    return solve(workspace, values)
