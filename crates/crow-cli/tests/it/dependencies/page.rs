//! The page of dependencies: each direct one with its reason, its source and what it may do, written by this test.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use expect_test::expect_file;
use serde_json::Value;

use super::cargo_metadata;

/// The reason for each direct dependency: what it does here that Crow does not do itself.
const REASONS: &str = include_str!("reasons.txt");

/// A package of the dependency tree, as Cargo describes it.
struct DependencyPackage<'a> {
    metadata: &'a Value,
}

impl<'a> DependencyPackage<'a> {
    fn name(&self) -> &'a str {
        self.metadata["name"].as_str().expect("a name")
    }

    fn has_target(&self, kind: &str) -> bool {
        let targets = self.metadata["targets"].as_array().expect("targets").iter();
        targets.flat_map(|target| target["kind"].as_array().expect("kinds")).any(|known| known == kind)
    }

    fn has_build_script(&self) -> bool {
        self.has_target("custom-build")
    }

    fn is_macro(&self) -> bool {
        self.has_target("proc-macro")
    }

    /// The place of the source, without what all of them have.
    fn source(&self) -> &'a str {
        let url = self.metadata["repository"].as_str().unwrap_or("not named");
        let url = url.trim_start_matches("https://").trim_end_matches(['/']).trim_end_matches(".git");
        url.split("/tree/").next().unwrap_or(url)
    }

    /// Whether the code has blocks, functions or implementations that the compiler does not check.
    fn has_unsafe_code(&self) -> bool {
        let manifest = self.metadata["manifest_path"].as_str().expect("a path");
        let directory = Path::new(manifest).parent().expect("a directory");
        contains_unsafe(&directory.join("src"))
    }
}

fn contains_unsafe(directory: &Path) -> bool {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.into_iter().any(|entry| {
        let path = entry.path();
        if path.is_dir() {
            return contains_unsafe(&path);
        }
        if path.extension().is_none_or(|extension| extension != "rs") {
            return false;
        }
        let text = fs::read_to_string(path).unwrap_or_default();
        let code = text.lines().map(str::trim_start).filter(|line| !line.starts_with("//"));
        code.into_iter().any(|line| {
            ["unsafe {", "unsafe fn ", "unsafe impl", "unsafe extern"].iter().any(|word| line.contains(word))
        })
    })
}

/// The dependency tree on Linux.
struct DependencyTree<'a> {
    packages: BTreeMap<&'a str, DependencyPackage<'a>>,
    nodes: BTreeMap<&'a str, &'a Value>,
    /// The crates of this workspace.
    members: BTreeSet<&'a str>,
}

impl<'a> DependencyTree<'a> {
    fn new(metadata: &'a Value) -> Self {
        let id = |value: &'a Value| value["id"].as_str().expect("an ID");
        let packages = metadata["packages"].as_array().expect("packages").iter();
        let nodes = metadata["resolve"]["nodes"].as_array().expect("nodes").iter();
        let members = metadata["workspace_members"].as_array().expect("members").iter();
        Self {
            packages: packages.map(|metadata| (id(metadata), DependencyPackage { metadata })).collect(),
            nodes: nodes.map(|node| (id(node), node)).collect(),
            members: members.map(|id| id.as_str().expect("an ID")).collect(),
        }
    }

    /// Returns the IDs of what a package depends on; `None` is a normal dependency.
    fn dependencies(&self, id: &str, kind: Option<&str>) -> Vec<&'a str> {
        let dependencies = self.nodes[id]["deps"].as_array().expect("dependencies").iter();
        let of_kind = dependencies.filter(|dependency| {
            let kinds = dependency["dep_kinds"].as_array().expect("kinds").iter();
            kinds.into_iter().any(|known| known["kind"].as_str() == kind)
        });
        of_kind.map(|dependency| dependency["pkg"].as_str().expect("an ID")).collect()
    }

    /// Returns all that is needed to build packages: what they link, and what runs for that.
    fn closure(&self, starts: Vec<&'a str>) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut left = starts;
        while let Some(id) = left.pop() {
            if found.insert(id) {
                left.extend(self.dependencies(id, None));
                left.extend(self.dependencies(id, Some("build")));
            }
        }
        found
    }

    /// Returns the direct dependencies that are not of this workspace, of the kind.
    fn direct(&self, members: &BTreeSet<&'a str>, kind: Option<&str>) -> BTreeSet<&'a str> {
        let all = members.iter().flat_map(|member| self.dependencies(member, kind));
        all.filter(|id| !self.members.contains(id)).collect()
    }
}

fn reasons() -> BTreeMap<&'static str, &'static str> {
    REASONS.lines().map(|line| line.split_once(": ").expect("a name and a reason")).collect()
}

/// Renders names as one wrapped paragraph.
fn wrap_names(names: &BTreeSet<&str>) -> String {
    const COLUMNS: usize = 120;
    let mut lines = vec![String::new()];
    for name in names {
        let word = format!("`{name}`,");
        let line = lines.last_mut().expect("there is one");
        if line.len() + word.len() >= COLUMNS {
            lines.push(word);
        } else {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(&word);
        }
    }
    lines.join("\n").trim_end_matches(',').to_owned() + ".\n"
}

#[test]
fn page_of_dependencies_has_a_reason_for_each() {
    let metadata = cargo_metadata();
    let tree = DependencyTree::new(&metadata);
    let program = tree.members.iter().copied().find(|id| tree.packages[id].name() == "crow-cli");
    let in_program = tree.closure(vec![program.expect("the program")]);
    let linked_members = tree.members.intersection(&in_program).copied().collect();
    let (direct, for_tests) = (tree.direct(&linked_members, None), tree.direct(&tree.members, Some("dev")));
    let elsewhere = tree.direct(&tree.members, None);
    let mut reasons = reasons();
    let mut table = String::new();
    let all: BTreeMap<&str, &str> =
        direct.iter().chain(&for_tests).chain(&elsewhere).map(|id| (tree.packages[id].name(), *id)).collect();
    for (name, id) in all {
        let package = &tree.packages[id];
        let reason = reasons.remove(name).unwrap_or_else(|| panic!("{name} needs a reason in reasons.txt"));
        let place = if direct.contains(id) { "" } else { "tests" };
        let unsafe_code = if package.has_unsafe_code() { "yes" } else { "" };
        table += &format!("| `{name}` | {reason} | {place} | {} | {unsafe_code} |\n", package.source());
    }
    // Windows has one that Linux does not see.
    assert_eq!(reasons.into_keys().collect::<Vec<_>>(), ["windows-sys"], "no dependency has this name");
    let foreign: Vec<&DependencyPackage> =
        in_program.difference(&tree.members).map(|id| &tree.packages[id]).collect();
    let names = |chosen: fn(&DependencyPackage<'_>) -> bool| {
        foreign.iter().filter(|package| chosen(package)).map(|package| package.name()).collect()
    };
    let page = format!(
        "# Dependencies\n\n\
         Every crate that Crow names itself, with the reason why it is there. A new one needs a line in\n\
         `crates/crow-cli/tests/it/dependencies/reasons.txt`, and its decision a line in an [ADR](../adr/README.md). Their code\n\
         was not audited. What holds for all of them is that they come from crates.io with the hash in `Cargo.lock`, and that\n\
         `deny.toml` has their licences and the crates that are banned; tests check both.\n\n\
         <!-- A test writes this page: `UPDATE_EXPECT=1 cargo test -p crow-cli --test it page_of_dependencies`. -->\n\n\
         | crate | for | only in | source | unsafe code |\n|---|---|---|---|---|\n{table}\n\
         On Windows there is `windows-sys` as well, Microsoft's declarations of the system.\n\n\
         ## The whole tree\n\n\
         On Linux the program is built from {} crates of others. While it is built, code of these runs.\n\n\
         Build scripts:\n{}\n\
         Procedural macros:\n{}",
        foreign.len(),
        wrap_names(&names(|package| package.has_build_script())),
        wrap_names(&names(|package| package.is_macro())),
    );
    expect_file!["../../../../../docs/dev/dependencies.md"].assert_eq(&page);
}
