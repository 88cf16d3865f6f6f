"""One value deep in a JSON file; the rest is equal as data."""

import json

GROUP = "data"


def make(workspace, draw):
    names = draw.words(5)
    services = [
        {"name": name, "limits": {"memory": 128, "cpu": draw.randint(1, 4)}, "tags": draw.words(2), "ratio": 0.5} for name in names
    ]
    data = {"version": 3, "services": services, "empty": {}, "none": None}
    workspace.write("services.json", json.dumps(data, indent=2) + "\n")
    return {"service": names[3], "memory": draw.randint(200, 900), "data": data}


def expected(values):
    data = json.loads(json.dumps(values["data"]))
    data["services"][3]["limits"]["memory"] = values["memory"]
    return data


def check(outcome):
    outcome.require_unchanged("services.json")
    data = json.loads(outcome.workspace.read("services.json"))
    outcome.require(data == expected(outcome.values), "the data is not what was asked for")
    kind = type(data["services"][3]["limits"]["memory"]).__name__
    outcome.require(kind == "int", f"the value is of type {kind}")


def solve(workspace, values):
    workspace.write("services.json", json.dumps(expected(values), indent=2) + "\n")
    return "Set."


def spoil_type(workspace, values):
    workspace.write("services.json", json.dumps(expected(values)).replace(str(values["memory"]), f'"{values["memory"]}"'))
    return "Set."


def spoil_service(workspace, values):
    data = json.loads(json.dumps(values["data"]))
    data["services"][0]["limits"]["memory"] = values["memory"]
    workspace.write("services.json", json.dumps(data))
    return "Set."
