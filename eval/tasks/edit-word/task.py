"""One word of one line changes, and no other byte."""

GROUP = "smallest"


def make(workspace, draw):
    keys, words = draw.words(6), draw.words(6)
    name = f"{draw.word()}.ini"
    workspace.write(name, "[main]\n" + "".join(f"{key} = {word}\n" for key, word in zip(keys, words)))
    return {"name": name, "key": keys[3], "old": words[3], "new": draw.word(), "text": workspace.read(name)}


def expected(values):
    return values["text"].replace(f"{values['key']} = {values['old']}", f"{values['key']} = {values['new']}")


def check(outcome):
    outcome.require_unchanged(outcome.values["name"])
    outcome.require_bytes(outcome.values["name"], expected(outcome.values))


def solve(workspace, values):
    workspace.write(values["name"], expected(values))
    return "Changed."


def spoil_last_newline(workspace, values):
    workspace.write(values["name"], expected(values).rstrip())
    return "Changed."


def spoil_other_lines(workspace, values):
    workspace.write(values["name"], f"[main]\n{values['key']} = {values['new']}\n")
    return "Changed."
