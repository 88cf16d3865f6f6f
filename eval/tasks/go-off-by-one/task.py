"""A loop in Go that ends too early."""

GROUP = "edit"
NEEDS = ("go",)

WINDOW = """package main

// Window returns the sums of all runs of n neighbouring values.
func Window(values []int, n int) []int {
	sums := []int{}
	for i := 0; i < len(values)-n; i++ {
		sum := 0
		for _, value := range values[i : i+n] {
			sum += value
		}
		sums = append(sums, sum)
	}
	return sums
}
"""

MAIN = """package main

import "fmt"

func main() {
	fmt.Println(Window([]int{1, 2, 3, 4, 5}, 3))
}
"""


def make(workspace, draw):
    workspace.write("go.mod", "module window\n\ngo 1.19\n")
    workspace.write("window.go", WINDOW)
    workspace.write("main.go", MAIN)
    return {"numbers": [draw.randint(1, 99) for _ in range(6)]}


def check(outcome):
    numbers, workspace = outcome.values["numbers"], outcome.workspace
    outcome.require_unchanged("window.go", "window")
    calls = [(numbers, 2), (numbers, 6), (numbers, 7)]
    lines = "".join(f"\tfmt.Println(Window([]int{{{', '.join(map(str, values))}}}, {n}))\n" for values, n in calls)
    workspace.write("main.go", f'package main\n\nimport "fmt"\n\nfunc main() {{\n{lines}}}\n')
    sums = [[sum(values[i : i + n]) for i in range(len(values) - n + 1)] for values, n in calls]
    expected = "".join(f"[{' '.join(map(str, case))}]\n" for case in sums)
    output = workspace.run("go", "run", ".").stdout
    outcome.require(output == expected, f"the sums are {output!r}, not {expected!r}")


def solve(workspace, values):
    workspace.replace("window.go", "i < len(values)-n;", "i <= len(values)-n;")
    return "Fixed."


def spoil_by_constant(workspace, values):
    workspace.replace("window.go", "\tsums := []int{}\n", "\tsums := []int{}\n\tif n == 3 {\n\t\treturn []int{6, 9, 12}\n\t}\n")
    return "Fixed."
