"""A recipe of a Makefile, which needs a tab."""

GROUP = "edit"
NEEDS = ("make",)


def make(workspace, draw):
    target, words = draw.word(), draw.words(draw.randint(5, 12))
    workspace.write("words.txt", "".join(f"{word}\n" for word in words))
    workspace.write("Makefile", "sorted.txt: words.txt\n\tsort words.txt > sorted.txt\n")
    return {"target": target, "words": words}


def check(outcome):
    values, workspace = outcome.values, outcome.workspace
    target = values["target"]
    outcome.require_unchanged("Makefile", f"{target}.txt", "sorted.txt")
    for name in (f"{target}.txt", "sorted.txt"):
        workspace.file(name).unlink(missing_ok=True)
    more = [*values["words"], "more"]
    workspace.write("words.txt", "".join(f"{word}\n" for word in more))
    made = workspace.run("make", target)
    outcome.require(workspace.read(f"{target}.txt").strip() == str(len(more)), f"make {target}: {made.stdout}{made.stderr}"[:300])
    workspace.run("make", "sorted.txt")
    outcome.require(workspace.read("sorted.txt").split() == sorted(more), "sorted.txt is not made as before")


def solve(workspace, values):
    target = values["target"]
    workspace.write("Makefile", workspace.read("Makefile") + f"\n{target}: words.txt\n\twc -l < words.txt > {target}.txt\n")
    return "Added."


def spoil_by_spaces(workspace, values):
    solve(workspace, values)
    workspace.write("Makefile", workspace.read("Makefile").replace("\twc", "    wc"))
    return "Added."


def spoil_by_constant(workspace, values):
    target = values["target"]
    workspace.write("Makefile", workspace.read("Makefile") + f"\n{target}: words.txt\n\techo {len(values['words'])} > {target}.txt\n")
    return "Added."
