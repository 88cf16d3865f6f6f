"""One line among 400 files, in few requests."""

GROUP = "search"

REQUESTS_MAX = 6


def make(workspace, draw):
    variable = draw.word().upper()
    names = []
    for i in range(400):
        name = f"{draw.choice(['api', 'jobs', 'web', 'tools'])}/{draw.word()}/{draw.word()}_{i}.py"
        text = "".join(f"{draw.word().upper()} = {draw.randint(1, 999)}\n" for _ in range(30))
        if i % 40 == 7:
            text += f'value = os.environ.get("{variable}", "")\n'
        names.append(name)
        workspace.write(name, "import os\n\n" + text)
    needle = names[draw.randint(100, 300)]
    workspace.write(needle, workspace.read(needle) + f'os.environ["{variable}"] = "on"\n')
    return {"variable": variable, "needle": needle, "names": names[:40]}


def check(outcome):
    outcome.require_unchanged()
    needle = outcome.values["needle"]
    outcome.require(needle in outcome.answer, f"the answer does not name {needle}")
    outcome.require(outcome.answer.count(".py") == outcome.answer.count(needle), "the answer names other files")
    n_requests = outcome.n_requests or 0
    outcome.require(n_requests <= REQUESTS_MAX, f"{n_requests} requests, not {REQUESTS_MAX}")


def solve(workspace, values):
    return values["needle"]


def spoil_by_reader(workspace, values):
    return values["names"][7]


def spoil_by_list(workspace, values):
    return f"{values['needle']}\n{values['names'][7]}"
