"""Three of twelve files, among similar lines."""

GROUP = "search"


def make(workspace, draw):
    owner, other = draw.words(2)
    names = [f"{directory}/{draw.word()}.py" for directory in ("core", "net", "ui") for _ in range(4)]
    mine = sorted(draw.sample(names, 3))
    for name in names:
        lines = [f"def {draw.word()}():", "    return 1", ""]
        if name in mine:
            lines.insert(draw.randint(0, 3), f"# TODO({owner}): {draw.word()}")
        else:
            lines.append(draw.choice([f"# TODO({other}): ask {owner}", f"# NOTE({owner}): {draw.word()}", f"# TODO: {owner}"]))
        workspace.write(name, "\n".join(lines) + "\n")
    return {"owner": owner, "names": names, "mine": mine}


def check(outcome):
    outcome.require_unchanged()
    named = [name for name in outcome.values["names"] if name in outcome.answer]
    outcome.require(sorted(named) == outcome.values["mine"], f"the answer names {named}, not {outcome.values['mine']}")


def solve(workspace, values):
    return "\n".join(values["mine"])


def spoil_by_two(workspace, values):
    return "\n".join(values["mine"][:2])


def spoil_by_all(workspace, values):
    return "\n".join(values["names"])
