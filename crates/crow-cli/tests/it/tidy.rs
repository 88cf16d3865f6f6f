//! The rules of `ARCHITECTURE.md` that a machine can check, read from manifests and sources.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod circles;
mod documents;
mod links;
mod names;
mod prose;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::OnceLock,
};

/// A longer file has several reasons to change.
const FILE_LINES_MAX: usize = 600;

/// The crates that each crate may use. A crate that is missing here has no place in the architecture.
const ARROWS: [(&str, &[&str]); 20] = [
    ("crow-core", &[]),
    ("crow-files", &["crow-core"]),
    ("crow-store", &["crow-core", "crow-files", "crow-process"]),
    ("crow-history", &["crow-core", "crow-files", "crow-store", "crow-tools"]),
    ("crow-import", &["crow-core", "crow-files", "crow-store"]),
    ("crow-fleet", &["crow-core", "crow-tools", "crow-acp"]),
    ("crow-model", &["crow-core", "crow-files"]),
    ("crow-process", &["crow-core", "crow-files"]),
    ("crow-speckit", &["crow-files"]),
    ("crow-telemetry", &["crow-core", "crow-model"]),
    ("crow-tools", &["crow-core", "crow-files", "crow-process", "crow-acp"]),
    ("crow-acp", &["crow-core", "crow-process"]),
    ("crow-children", &["crow-core", "crow-files", "crow-fleet", "crow-store", "crow-tools", "crow-acp"]),
    ("crow-client", &["crow-core", "crow-files", "crow-process", "crow-acp"]),
    ("crow-project", &["crow-acp", "crow-core", "crow-files", "crow-speckit", "crow-store", "crow-tools"]),
    ("crow-workflow", &["crow-core", "crow-files", "crow-speckit", "crow-tools"]),
    (
        "crow-agent",
        &[
            "crow-core",
            "crow-files",
            "crow-history",
            "crow-project",
            "crow-store",
            "crow-model",
            "crow-tools",
            "crow-acp",
            "crow-speckit",
            "crow-children",
            "crow-workflow",
        ],
    ),
    ("crow-tui", &["crow-core", "crow-files", "crow-process", "crow-acp"]),
    (
        "crow-cli",
        &[
            "crow-core",
            "crow-files",
            "crow-project",
            "crow-history",
            "crow-store",
            "crow-import",
            "crow-model",
            "crow-telemetry",
            "crow-process",
            "crow-tools",
            "crow-acp",
            "crow-speckit",
            "crow-children",
            "crow-fleet",
            "crow-workflow",
            "crow-agent",
            "crow-tui",
        ],
    ),
    ("crow-testkit", &["crow-core", "crow-acp"]),
];

/// External dependencies with the only crates that may use them.
const OWNED: [(&str, &[&str]); 9] = [
    ("agent-client-protocol", &["crow-acp"]),
    ("async-nats", &["crow-fleet"]),
    // The databases that the Python version left have tables of their own.
    ("rusqlite", &["crow-store", "crow-import"]),
    // Models answer over HTTP, and so do MCP servers and remote agents.
    ("reqwest", &["crow-model", "crow-tools", "crow-acp"]),
    ("rmcp", &["crow-tools"]),
    ("pty-process", &["crow-process"]),
    ("process-wrap", &["crow-process"]),
    ("landlock", &["crow-process"]),
    ("seccompiler", &["crow-process"]),
];

/// Crates that the pure crate may not use, besides those above.
const IMPURE: [&str; 6] = ["tokio", "tokio-util", "futures-util", "jiff", "tempfile", "tracing"];

struct Manifest {
    dependencies: Vec<String>,
    for_tests: Vec<String>,
    runs_doc_tests: bool,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn manifests() -> BTreeMap<String, Manifest> {
    let folders = fs::read_dir(root().join("crates")).expect("the crates");
    let manifest = |folder: PathBuf| {
        let text = fs::read_to_string(folder.join("Cargo.toml")).expect("a manifest");
        let table: toml::Table = text.parse().expect("TOML");
        let names = |key: &str| match table.get(key).and_then(toml::Value::as_table) {
            Some(table) => table.keys().cloned().collect(),
            None => Vec::new(),
        };
        let mut dependencies: Vec<String> = names("dependencies");
        dependencies.extend(names("build-dependencies"));
        let targets = table.get("target").and_then(toml::Value::as_table);
        for target in targets.into_iter().flat_map(toml::Table::values) {
            let table = target.get("dependencies").and_then(toml::Value::as_table);
            dependencies.extend(table.into_iter().flat_map(|table| table.keys().cloned()));
        }
        let name = table["package"]["name"].as_str().expect("a name").to_owned();
        let doctest = table.get("lib").and_then(|lib| lib.get("doctest")).and_then(toml::Value::as_bool);
        let for_tests = names("dev-dependencies");
        (name, Manifest { dependencies, for_tests, runs_doc_tests: doctest.unwrap_or(true) })
    };
    folders.map(|folder| manifest(folder.expect("a crate").path())).collect()
}

/// Returns every Rust file with its text, by its path from the root.
fn sources() -> &'static [(String, String)] {
    static SOURCES: OnceLock<Vec<(String, String)>> = OnceLock::new();
    SOURCES.get_or_init(read_sources)
}

fn read_sources() -> Vec<(String, String)> {
    let root = root();
    let mut found = Vec::new();
    let mut folders = vec![root.join("crates")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).expect("below the root").display().to_string();
                found.push((name, fs::read_to_string(&path).expect("a source")));
            }
        }
    }
    found
}

#[track_caller]
fn check(rule: &str, broken: &[String]) {
    assert!(broken.is_empty(), "{rule}:\n{}", broken.join("\n"));
}

/// Finds lines with one of these words in the selected files, without this file, which contains them all.
#[track_caller]
fn check_lines(rule: &str, is_chosen: impl Fn(&str) -> bool, words: &[&str]) {
    let mut broken = Vec::new();
    for (name, text) in sources() {
        if !is_chosen(name) || name.ends_with("tests/it/tidy.rs") {
            continue;
        }
        let lines = text.lines().enumerate().filter(|(_, line)| words.iter().any(|word| line.contains(word)));
        broken.extend(lines.map(|(place, line)| format!("{name}:{}: {}", place + 1, line.trim())));
    }
    check(rule, &broken);
}

fn is_test(name: &str) -> bool {
    name.contains("/tests/") || name.ends_with("/tests.rs") || name.contains("crow-testkit")
}

/// Whether rustdoc would compile a code block of a source.
fn has_doc_test(source: &str) -> bool {
    let mut is_open = false;
    source.lines().any(|line| {
        let line = line.trim_start();
        let doc = line.strip_prefix("//! ").or_else(|| line.strip_prefix("/// "));
        let Some(language) = doc.and_then(|doc| doc.strip_prefix("```")) else { return false };
        is_open = !is_open;
        is_open && !["text", "json", "console", "toml", "yaml"].contains(&language)
    })
}

#[test]
fn doc_tests_run_where_there_are_some() {
    let sources = sources();
    let mut broken = Vec::new();
    for (name, manifest) in manifests() {
        let source_dir = format!("crates/{name}/src/");
        let has_some = sources.iter().any(|(path, text)| path.starts_with(&source_dir) && has_doc_test(text));
        if has_some != manifest.runs_doc_tests {
            broken.push(format!("{name}: {has_some}"));
        }
    }
    // Rustdoc takes a third of a second for each crate, and runs one after another.
    check("`doctest = false` is in the manifests of the crates without doc tests", &broken);
}

#[test]
fn crates_use_only_those_below_them() {
    let mut broken = Vec::new();
    for (name, manifest) in manifests() {
        let Some((_, allowed)) = ARROWS.iter().find(|(other, _)| *other == name) else {
            broken.push(format!("{name} has no place"));
            continue;
        };
        let ours = manifest.dependencies.iter().filter(|dependency| dependency.starts_with("crow-"));
        let wrong = ours.filter(|dependency| !allowed.contains(&dependency.as_str()));
        broken.extend(wrong.map(|dependency| format!("{name} uses {dependency}")));
        let ours = manifest.for_tests.iter().filter(|dependency| dependency.starts_with("crow-"));
        let wrong = ours.filter(|dependency| {
            let is_free = dependency.as_str() == "crow-testkit" || allowed.contains(&dependency.as_str());
            name == "crow-core" || !is_free
        });
        broken.extend(wrong.map(|dependency| format!("{name} uses {dependency} in its tests")));
    }
    check("a crate uses only what its place allows", &broken);
}

#[test]
fn each_outside_thing_has_one_owner() {
    let mut broken = Vec::new();
    for (name, manifest) in manifests() {
        for (thing, owners) in OWNED {
            let names_it = manifest.dependencies.iter().any(|dependency| dependency == thing);
            if names_it && !owners.contains(&name.as_str()) {
                broken.push(format!("{name} names {thing}, which {} own", owners.join(" and ")));
            }
        }
    }
    check("an outside thing has one owner", &broken);
}

#[test]
fn the_thinking_is_pure() {
    let manifests = manifests();
    let core = &manifests["crow-core"];
    let named = core.dependencies.iter().chain(&core.for_tests);
    let wrong =
        named.filter(|name| IMPURE.contains(&name.as_str()) || OWNED.iter().any(|(thing, _)| thing == name));
    check("crow-core names no runtime and nothing outside", &wrong.cloned().collect::<Vec<_>>());
    let is_core = |name: &str| name.starts_with("crates/crow-core/src/");
    let outside =
        ["std::fs", "std::net", "std::env", "std::thread", "std::process", "Instant::now", "SystemTime"];
    check_lines("crow-core touches nothing outside", is_core, &outside);
}

#[test]
fn the_test_kit_stays_in_tests() {
    let uses = manifests()
        .into_iter()
        .filter(|(_, manifest)| manifest.dependencies.iter().any(|name| name == "crow-testkit"));
    check("crow-testkit is for tests", &uses.map(|(name, _)| name).collect::<Vec<_>>());
}

#[test]
fn what_is_locked_comes_from_the_registry_and_is_not_banned() {
    let text = fs::read_to_string(root().join("Cargo.lock")).expect("the lock file");
    let lock: toml::Table = text.parse().expect("TOML");
    let mut broken = Vec::new();
    for package in lock["package"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        let source = package.get("source").and_then(toml::Value::as_str);
        let is_ours = source.is_none() && name.starts_with("crow-");
        if !is_ours
            && !source
                .is_some_and(|source| source.starts_with("registry+https://github.com/rust-lang/crates.io"))
        {
            broken.push(format!("{name} comes from {}", source.unwrap_or("a path")));
        }
        if ["openssl-sys", "native-tls", "aws-lc-sys"].contains(&name) {
            broken.push(format!("{name} is banned: TLS is rustls with ring"));
        }
    }
    check("dependencies come from the registry", &broken);
}

#[test]
fn files_are_short() {
    let long = sources().iter().map(|(name, text)| (name, text.lines().count()));
    let long = long
        .filter(|(_, n_lines)| *n_lines > FILE_LINES_MAX)
        .map(|(name, n_lines)| format!("{name}: {n_lines}"));
    check("a file has one reason to change", &long.collect::<Vec<_>>());
}

#[test]
fn nothing_is_left_for_later() {
    check_lines("no test is switched off", |_| true, &["#[ignore"]);
    // Tests edit made-up sources that may contain these words.
    check_lines("nothing is left open", |name| !is_test(name), &["todo!(", "unimplemented!("]);
    check_lines("no notes to ourselves", |_| true, &["// TODO", "// FIXME", "// XXX"]);
}

#[test]
fn lints_are_expected_not_allowed() {
    check_lines("an exception goes away with its cause", |_| true, &["#[allow(", "#![allow("]);
}

#[test]
fn everything_is_bounded() {
    check_lines(
        "a channel has a length",
        |_| true,
        &["unbounded_channel", "mpsc::unbounded", "channel::unbounded"],
    );
}

#[test]
fn tests_wait_for_events() {
    // The watchdog of the test kit sleeps in its own thread, so that a test that waits in vain ends.
    let is_waiting = |name: &str| is_test(name) && !name.starts_with("crates/crow-testkit/");
    let words = ["thread::sleep", "time::sleep(", " sleep("];
    check_lines("a test that sleeps is slow or wrong", is_waiting, &words);
}

#[test]
fn only_the_protocol_room_spells_the_protocol() {
    let is_elsewhere = |name: &str| !name.starts_with("crates/crow-acp/") && !is_test(name);
    check_lines("only crow-acp names the SDK", is_elsewhere, &["agent_client_protocol"]);
}

#[test]
fn the_program_opens_databases_with_every_format() {
    let is_program = |name: &str| name.starts_with("crates/crow-cli/src/") && !is_test(name);
    let words = ["Store::open", "StoreOptions::default"];
    let is_elsewhere = |name: &str| is_program(name) && name != "crates/crow-cli/src/database.rs";
    check_lines("only database.rs says how a database is opened", is_elsewhere, &words);
}

#[test]
fn operating_system_is_behind_two_crates() {
    let words = [
        "std::os::",
        "os::unix",
        "os::windows",
        "os::fd",
        "nix::",
        "libc::",
        "rustix::",
        "windows_sys::",
        "signal::unix",
        "signal::windows",
        "net::unix",
        "net::windows",
    ];
    let mut broken = Vec::new();
    for (name, text) in sources() {
        let is_behind =
            ["crates/crow-files/", "crates/crow-process/"].iter().any(|dir| name.starts_with(dir));
        if is_behind || is_test(name) || !name.contains("/src/") {
            continue;
        }
        // Tests may make links and pipes. They are the end of a file.
        let program = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let program = program.split("#[cfg(all(test, unix))]").next().unwrap_or_default();
        let lines =
            program.lines().enumerate().filter(|(_, line)| words.iter().any(|word| line.contains(word)));
        broken.extend(lines.map(|(place, line)| format!("{name}:{}: {}", place + 1, line.trim())));
    }
    check("only crow-files and crow-process use what one operating system has", &broken);
}
