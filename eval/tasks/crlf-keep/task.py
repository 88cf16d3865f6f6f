"""A file with CRLF line ends keeps them."""

GROUP = "edit"


def make(workspace, draw):
    words, name = draw.words(8), draw.word()
    text = "".join(f"{word} {i}\r\n" for i, word in enumerate(words))
    workspace.write(f"{name}.txt", text)
    return {"name": name, "old": words[4], "new": draw.word(), "text": text}


def check(outcome):
    values = outcome.values
    outcome.require_unchanged(f"{values['name']}.txt")
    outcome.require_bytes(f"{values['name']}.txt", values["text"].replace(values["old"], values["new"]))


def solve(workspace, values):
    workspace.write(f"{values['name']}.txt", values["text"].replace(values["old"], values["new"]))
    return "Replaced."


def spoil_line_ends(workspace, values):
    workspace.write(f"{values['name']}.txt", values["text"].replace(values["old"], values["new"]).replace("\r\n", "\n"))
    return "Replaced."


def spoil_one_line_end(workspace, values):
    old, new = f"{values['old']} 4\r\n", f"{values['new']} 4\n"
    workspace.write(f"{values['name']}.txt", values["text"].replace(old, new))
    return "Replaced."
