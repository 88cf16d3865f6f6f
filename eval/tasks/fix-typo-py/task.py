"""A misspelled variable of a Python file."""

import json

GROUP = "smallest"


def make(workspace, draw):
    name, variable = draw.word(), draw.word()
    wrong = variable[:-2] + variable[-1] + variable[-2]
    text = f'''def sum_of(values):
    {variable} = 0
    for value in values:
        {variable} = {variable} + value
    return {wrong}


if __name__ == "__main__":
    print(sum_of([1, 2, 3]))
'''
    workspace.write(f"{name}.py", text)
    numbers = [draw.randint(1, 999) for _ in range(5)]
    return {"name": name, "wrong": wrong, "right": variable, "numbers": numbers}


def check(outcome):
    name, numbers = outcome.values["name"], outcome.values["numbers"]
    outcome.require_unchanged(f"{name}.py")
    code = f"import json, sys; sys.path.insert(0, '.'); import {name}; print({name}.sum_of(json.loads(sys.argv[1])))"
    output = outcome.run_python(code, json.dumps(numbers)).strip()
    outcome.require(output == str(sum(numbers)), f"the sum of {numbers} is {output!r}")
    outcome.require(outcome.workspace.run("python3", f"{name}.py").stdout.strip() == "6", "the program does not print 6")


def solve(workspace, values):
    workspace.replace(f"{values['name']}.py", f"return {values['wrong']}", f"return {values['right']}")
    return "Fixed."


def spoil_by_constant(workspace, values):
    workspace.replace(f"{values['name']}.py", f"return {values['wrong']}", "return 6")
    return "Fixed."
