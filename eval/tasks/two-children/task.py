"""Two child agents, each with a result, and the sum of the parent."""

GROUP = "judgement"


def make(workspace, draw):
    word = draw.word()
    counts = {}
    for place in ("north", "south"):
        counts[place] = draw.randint(11, 40)
        lines = [f"{draw.word()} {word}" for _ in range(counts[place])] + [f"{word}x {draw.word()}"[1:] for _ in range(20)]
        draw.shuffle(lines)
        for i in range(3):
            workspace.write(f"{place}/{draw.word()}.txt", "".join(f"{line}\n" for line in lines[i::3]))
    return {"word": word, **counts}


def check(outcome):
    values, workspace = outcome.values, outcome.workspace
    outcome.require_unchanged("north.count", "south.count")
    for place in ("north", "south"):
        count = workspace.read(f"{place}.count").strip()
        outcome.require(count == str(values[place]), f"{place}.count has {count!r}, not {values[place]}")
    outcome.require_number(values["north"] + values["south"], values["north"], values["south"])
    n = outcome.n_conversations
    outcome.require(n is None or n >= 3, f"the model had {n} conversations, not one of each child besides the parent's")


def solve(workspace, values):
    for place in ("north", "south"):
        workspace.write(f"{place}.count", f"{values[place]}\n")
    return f"{values['north'] + values['south']}"


def spoil_sum(workspace, values):
    solve(workspace, values)
    return f"{values['north']}"


def spoil_report(workspace, values):
    workspace.write("north.count", f"{values['north']}\n")
    return f"{values['north'] + values['south']}"
