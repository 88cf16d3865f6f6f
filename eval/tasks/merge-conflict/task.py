"""A merge whose sides are both kept."""

GROUP = "git"


def make(workspace, draw):
    first, last, ours, theirs = draw.words(4)
    workspace.write("list.txt", f"{first}\n{last}\n")
    workspace.start_repository()
    workspace.git("checkout", "--quiet", "-b", "other")
    workspace.write("list.txt", f"{first}\n{theirs}\n{last}\n")
    workspace.commit_all("Theirs")
    workspace.git("checkout", "--quiet", "main")
    workspace.write("list.txt", f"{first}\n{ours}\n{last}\n")
    workspace.commit_all("Ours")
    workspace.git("merge", "other")
    return {"first": first, "last": last, "ours": ours, "theirs": theirs}


def check(outcome):
    values, workspace = outcome.values, outcome.workspace
    outcome.require_unchanged("list.txt")
    both = [[values["ours"], values["theirs"]], [values["theirs"], values["ours"]]]
    lines = workspace.read("list.txt").splitlines()
    outcome.require(lines in [[values["first"], *pair, values["last"]] for pair in both], f"list.txt has {lines}")
    outcome.require(workspace.git("show", "HEAD:list.txt").splitlines() == lines, "the result is not committed")
    parents = workspace.git("log", "-1", "--format=%P").split()
    outcome.require(len(parents) == 2, f"the last commit has {len(parents)} parents")


def solve(workspace, values):
    lines = [values["first"], values["ours"], values["theirs"], values["last"]]
    workspace.write("list.txt", "".join(f"{line}\n" for line in lines))
    workspace.commit_all("Merge")
    return "Merged."


def spoil_one_side(workspace, values):
    workspace.write("list.txt", f"{values['first']}\n{values['ours']}\n{values['last']}\n")
    workspace.commit_all("Merge")
    return "Merged."


def spoil_by_aborting(workspace, values):
    workspace.git("merge", "--abort")
    lines = [values["first"], values["ours"], values["theirs"], values["last"]]
    workspace.write("list.txt", "".join(f"{line}\n" for line in lines))
    workspace.commit_all("Merge")
    return "Merged."
