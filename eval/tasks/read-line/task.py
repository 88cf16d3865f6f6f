"""One line of a file."""

GROUP = "smallest"


def make(workspace, draw):
    words = draw.words(12)
    name = f"{draw.word()}.txt"
    workspace.write(name, "".join(f"{word}\n" for word in words))
    return {"name": name, "words": words}


def check(outcome):
    words = outcome.values["words"]
    outcome.require_unchanged()
    outcome.require_words([words[6]], words)


def solve(workspace, values):
    return values["words"][6]


def spoil_by_next_line(workspace, values):
    return values["words"][7]


def spoil_by_whole_file(workspace, values):
    return " ".join(values["words"])
