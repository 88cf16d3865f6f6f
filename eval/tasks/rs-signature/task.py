"""A changed signature in Rust, with its callers."""

GROUP = "edit"
NEEDS = ("rustc",)

MAIN = """mod geometry;

fn main() {
    println!("{}", geometry::total(&[(2, 3), (4, 5)]));
}
"""

GEOMETRY = """//! Rectangles.

/// Returns the area of a rectangle.
pub fn area(width: u32, height: u32) -> u32 {
    width * height
}

/// Returns the sum of the areas.
pub fn total(rectangles: &[(u32, u32)]) -> u32 {
    rectangles.iter().map(|&(width, height)| area(width, height)).sum()
}
"""

DRIVER = """#[path = "geometry.rs"]
mod geometry;

fn main() {
    let area: Option<u32> = geometry::area(WIDTH, HEIGHT);
    println!("{:?} {:?}", area, geometry::area(70000, 70000));
    println!("{} {}", geometry::total(&[(WIDTH, HEIGHT), (2, 3)]), geometry::total(&[(70000, 70000), (1, 1)]));
    println!("{}", geometry::total(&[(u32::MAX, 1), (2, 1)]));
}
"""


def make(workspace, draw):
    workspace.write("main.rs", MAIN)
    workspace.write("geometry.rs", GEOMETRY)
    return {"width": draw.randint(11, 99), "height": draw.randint(11, 99)}


def check(outcome):
    outcome.require_unchanged("geometry.rs", "main")
    values, workspace = outcome.values, outcome.workspace
    built = workspace.run("rustc", "--edition", "2021", "-o", "main-check", "main.rs")
    outcome.require(built.returncode == 0, f"main.rs does not compile: {built.stderr[-300:]}")
    workspace.write("driver.rs", DRIVER.replace("WIDTH", str(values["width"])).replace("HEIGHT", str(values["height"])))
    built = workspace.run("rustc", "--edition", "2021", "-o", "driver-check", "driver.rs")
    outcome.require(built.returncode == 0, f"area has not the signature: {built.stderr[-300:]}")
    area = values["width"] * values["height"]
    expected = f"Some({area}) None\n{area + 6} {2**32 - 1}\n{2**32 - 1}\n"
    output = workspace.run("./driver-check").stdout
    outcome.require(output == expected, f"the results are {output!r}, not {expected!r}")


def solve(workspace, values):
    workspace.replace("geometry.rs", "height: u32) -> u32 {\n    width * height", "height: u32) -> Option<u32> {\n    width.checked_mul(height)")
    workspace.replace(
        "geometry.rs",
        "rectangles.iter().map(|&(width, height)| area(width, height)).sum()",
        "rectangles.iter().fold(0, |sum: u32, &(width, height)| sum.saturating_add(area(width, height).unwrap_or(u32::MAX)))",
    )
    return "Changed."


def spoil_by_unwrap(workspace, values):
    solve(workspace, values)
    workspace.replace("geometry.rs", ".unwrap_or(u32::MAX)", ".unwrap()")
    return "Changed."


def spoil_by_half(workspace, values):
    workspace.replace("geometry.rs", "height: u32) -> u32 {\n    width * height", "height: u32) -> Option<u32> {\n    Some(width * height)")
    return "Changed."
