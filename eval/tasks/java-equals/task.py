"""A comparison of strings by identity in Java."""

GROUP = "edit"
NEEDS = ("javac", "java")

TEXT = """public class Catalog {
    private final String[] codes;

    public Catalog(String... codes) {
        this.codes = codes;
    }

    /** Returns the position of the code, or -1. */
    public int find(String code) {
        for (int i = 0; i < codes.length; i++) {
            if (codes[i] == code) {
                return i;
            }
        }
        return -1;
    }
}
"""


def make(workspace, draw):
    workspace.write("Catalog.java", TEXT)
    return {"words": draw.words(3)}


def check(outcome):
    words, workspace = outcome.values["words"], outcome.workspace
    outcome.require_unchanged("Catalog.java", "Catalog.class")
    codes = ", ".join(f'"{word}"' for word in words)
    workspace.write(
        "Driver.java",
        f"""public class Driver {{
    public static void main(String[] arguments) {{
        Catalog catalog = new Catalog({codes});
        for (String code : arguments) {{
            System.out.println(catalog.find(code));
        }}
    }}
}}
""",
    )
    built = workspace.run("javac", "-d", "built", "Catalog.java", "Driver.java")
    outcome.require(built.returncode == 0, f"javac reports {built.stderr[-300:]}")
    output = workspace.run("java", "-cp", "built", "Driver", *reversed(words), "other").stdout
    outcome.require(output == "2\n1\n0\n-1\n", f"the positions are {output!r}")


def solve(workspace, values):
    workspace.replace("Catalog.java", "codes[i] == code", "codes[i].equals(code)")
    return "Fixed."


def spoil_by_first(workspace, values):
    workspace.replace("Catalog.java", "return -1;", "return 0;")
    return "Fixed."
