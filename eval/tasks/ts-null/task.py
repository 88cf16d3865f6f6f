"""A missing value in TypeScript, under strict types."""

GROUP = "edit"
NEEDS = ("tsc", "node")

TEXT = """export interface User {
  id: number;
  name: string | null;
}

export function label(user: User): string {
  return `${user.id}: ${user.name.toUpperCase()}`;
}
"""


def make(workspace, draw):
    workspace.write("user.ts", TEXT)
    return {"name": draw.word(), "id": draw.randint(10, 99)}


def check(outcome):
    values, workspace = outcome.values, outcome.workspace
    outcome.require_unchanged("user.ts", "user.js")
    built = workspace.run("tsc", "--strict", "--module", "commonjs", "--target", "es2020", "--outDir", "built", "user.ts")
    outcome.require(built.returncode == 0, f"tsc reports {built.stdout[-300:]}")
    driver = "const { label } = require('./built/user.js'); for (const user of JSON.parse(process.argv[1])) console.log(label(user));"
    users = f'[{{"id": {values["id"]}, "name": "{values["name"]}"}}, {{"id": 7, "name": null}}]'
    output = workspace.run("node", "-e", driver, users).stdout
    expected = f"{values['id']}: {values['name'].upper()}\n7: ?\n"
    outcome.require(output == expected, f"the labels are {output!r}, not {expected!r}")
    outcome.require("any" not in workspace.read("user.ts").replace("many", ""), "user.ts uses `any`")


def solve(workspace, values):
    workspace.replace("user.ts", "user.name.toUpperCase()", 'user.name?.toUpperCase() ?? "?"')
    return "Fixed."


def spoil_by_assertion(workspace, values):
    workspace.replace("user.ts", "user.name.toUpperCase()", "user.name!.toUpperCase()")
    return "Fixed."
