"""Two steps, of which the second needs the result of the first."""

import hashlib
import json

GROUP = "judgement"


def make(workspace, draw):
    words = draw.words(40)
    workspace.write("source.txt", "".join(f"{word}\n" for word in words))
    workspace.write(
        "build.py",
        '''import hashlib
import json
import os

text = open("source.txt").read()
os.makedirs("build", exist_ok=True)
with open("build/manifest.json", "w") as file:
    json.dump({"lines": text.count("\\n"), "checksum": hashlib.sha256(text.encode()).hexdigest()[:16]}, file)
print("built")
''',
    )
    workspace.write("release.txt", "0000000000000000\n")
    text = workspace.read("source.txt")
    return {"lines": len(words), "checksum": hashlib.sha256(text.encode()).hexdigest()[:16]}


def check(outcome):
    values, workspace = outcome.values, outcome.workspace
    outcome.require_unchanged("build/manifest.json", "release.txt")
    manifest = json.loads(workspace.read("build/manifest.json") or "null")
    expected = {"lines": values["lines"], "checksum": values["checksum"]}
    outcome.require(manifest == expected, f"the manifest is {manifest}")
    outcome.require(workspace.read("release.txt").strip() == values["checksum"], "release.txt has not the checksum")


def solve(workspace, values):
    workspace.run("python3", "build.py")
    workspace.write("release.txt", values["checksum"] + "\n")
    return "Built, and the checksum written."


def spoil_order(workspace, values):
    workspace.run("python3", "build.py")
    return "Done."


def spoil_manifest(workspace, values):
    workspace.write("release.txt", values["checksum"] + "\n")
    return "Done."
