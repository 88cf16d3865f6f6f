"""Two blocks that are equal except for their names: only one changes."""

GROUP = "edit"


def make(workspace, draw):
    services, n = draw.words(4), draw.randint(4, 9)
    block = "service {} {{\n    image = {}\n    replicas = 2\n    restart = always\n}}\n"
    image = draw.word()
    text = "\n".join(block.format(name, image) for name in services)
    workspace.write("services.conf", text)
    return {"service": services[2], "n": n, "text": text}


def expected(values):
    before, after = values["text"].split(f"service {values['service']} {{")
    return before + f"service {values['service']} {{" + after.replace("replicas = 2", f"replicas = {values['n']}", 1)


def check(outcome):
    outcome.require_unchanged("services.conf")
    outcome.require_bytes("services.conf", expected(outcome.values))


def solve(workspace, values):
    workspace.write("services.conf", expected(values))
    return "Changed."


def spoil_first_block(workspace, values):
    workspace.write("services.conf", values["text"].replace("replicas = 2", f"replicas = {values['n']}", 1))
    return "Changed."


def spoil_all_blocks(workspace, values):
    workspace.write("services.conf", values["text"].replace("replicas = 2", f"replicas = {values['n']}"))
    return "Changed."
