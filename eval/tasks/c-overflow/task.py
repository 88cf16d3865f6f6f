"""A sum in C that overflows."""

GROUP = "edit"
NEEDS = ("cc",)


def make(workspace, draw):
    name = draw.word()
    workspace.write(f"{name}.h", "int midpoint(int low, int high);\n")
    workspace.write(
        f"{name}.c",
        f'#include "{name}.h"\n\n/* Returns the middle of low and high, rounded towards low; low is not above high, and none is negative. */\n'
        "int midpoint(int low, int high)\n{\n    return (low + high) / 2;\n}\n",
    )
    return {"name": name, "low": draw.randint(2_000_000_000, 2_100_000_000), "high": draw.randint(2_110_000_000, 2_147_483_647)}


def check(outcome):
    values, workspace = outcome.values, outcome.workspace
    name, low, high = values["name"], values["low"], values["high"]
    outcome.require_unchanged(f"{name}.c", f"{name}.o")
    outcome.require("long" not in workspace.read(f"{name}.c"), "it uses a wider type")
    workspace.write(
        "driver.c",
        f'#include <stdio.h>\n#include "{name}.h"\nint main(void) {{\n'
        f'    printf("%d %d %d\\n", midpoint({low}, {high}), midpoint(3, 8), midpoint(5, 5));\n    return 0;\n}}\n',
    )
    built = workspace.run("cc", "-o", "driver", "driver.c", f"{name}.c")
    outcome.require(built.returncode == 0, f"cc reports {built.stderr[-300:]}")
    output = workspace.run("./driver").stdout
    outcome.require(output == f"{(low + high) // 2} 5 5\n", f"the results are {output!r}")


def solve(workspace, values):
    workspace.replace(f"{values['name']}.c", "(low + high) / 2", "low + (high - low) / 2")
    return "Fixed."


def spoil_by_halves(workspace, values):
    workspace.replace(f"{values['name']}.c", "(low + high) / 2", "low / 2 + high / 2")
    return "Fixed."
