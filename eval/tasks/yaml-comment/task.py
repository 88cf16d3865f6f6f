"""A value of a YAML file whose comments stay."""

GROUP = "data"


def make(workspace, draw):
    servers, words = draw.words(3), draw.words(4)
    lines = [f"# {words[0]}: read at start", "servers:"]
    for i, server in enumerate(servers):
        lines += [f"  {server}:  # {words[1]}", f"    host: {server}.example.org", "    port: 8080  # behind the proxy", f"    # {words[2]} {i}", "    tls: true"]
    text = "\n".join([*lines, f"owner: {words[3]}"]) + "\n"
    workspace.write("config.yaml", text)
    return {"server": servers[1], "port": draw.randint(8100, 8999), "text": text}


def expected(values):
    before, after = values["text"].split(f"  {values['server']}:")
    return before + f"  {values['server']}:" + after.replace("port: 8080", f"port: {values['port']}", 1)


def check(outcome):
    outcome.require_unchanged("config.yaml")
    outcome.require_bytes("config.yaml", expected(outcome.values))


def solve(workspace, values):
    workspace.write("config.yaml", expected(values))
    return "Changed."


def spoil_comments(workspace, values):
    text = expected(values)
    workspace.write("config.yaml", "".join(line.split("#")[0].rstrip() + "\n" for line in text.splitlines()))
    return "Changed."


def spoil_first_server(workspace, values):
    workspace.write("config.yaml", values["text"].replace("port: 8080", f"port: {values['port']}", 1))
    return "Changed."
