//! Checks the dependencies against `deny.toml`: nothing banned, nothing from another source, every licence known.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

mod page;

use std::{fs, path::Path, process::Command};

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

fn table(file: &str) -> toml::Table {
    let text = fs::read_to_string(root().join(file)).expect("the file is there");
    text.parse().expect("it is TOML")
}

/// Returns the packages of the lock file as (name, source).
fn locked() -> Vec<(String, Option<String>)> {
    let lock = table("Cargo.lock");
    let text =
        |package: &toml::Value, key: &str| package.get(key).and_then(toml::Value::as_str).map(str::to_owned);
    let packages = lock["package"].as_array().expect("packages").iter();
    packages.map(|package| (text(package, "name").expect("a name"), text(package, "source"))).collect()
}

#[test]
fn banned_crates_are_not_linked() {
    let deny = table("deny.toml");
    let banned = deny["bans"]["deny"].as_array().expect("a list").iter();
    let banned: Vec<&str> = banned.filter_map(|ban| ban.get("name")?.as_str()).collect();
    assert!(banned.contains(&"openssl"), "the list is read");
    let linked: Vec<String> = locked().into_iter().map(|(name, _)| name).collect();
    let found: Vec<&&str> =
        banned.iter().filter(|name| linked.iter().any(|linked| linked == **name)).collect();
    assert!(found.is_empty(), "banned by deny.toml: {found:?}");
}

#[test]
fn crates_come_from_the_registry() {
    let ours = |name: &str| name.starts_with("crow-");
    let elsewhere: Vec<String> = locked()
        .into_iter()
        .filter(|(name, source)| match source {
            Some(source) => source != "registry+https://github.com/rust-lang/crates.io-index",
            None => !ours(name),
        })
        .map(|(name, _)| name)
        .collect();
    assert!(elsewhere.is_empty(), "not from crates.io: {elsewhere:?}");
}

/// Returns what Cargo knows of the dependency tree on Linux.
#[expect(clippy::disallowed_methods, reason = "cargo knows the packages")]
fn cargo_metadata() -> Value {
    let metadata = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--offline", "--filter-platform"])
        .arg("x86_64-unknown-linux-gnu")
        .current_dir(root())
        .output()
        .expect("cargo runs");
    assert!(metadata.status.success(), "{}", String::from_utf8_lossy(&metadata.stderr));
    serde_json::from_slice(&metadata.stdout).expect("JSON")
}

#[test]
fn licences_are_known() {
    let deny = table("deny.toml");
    let allowed = deny["licenses"]["allow"].as_array().expect("a list").iter();
    let allowed: Vec<&str> = allowed.filter_map(toml::Value::as_str).collect();
    let metadata = cargo_metadata();
    let packages = metadata["packages"].as_array().expect("packages");
    let unknown: Vec<String> = packages
        .iter()
        .map(|package| (&package["name"], package["license"].as_str().unwrap_or("none")))
        .filter(|(_, licence)| !is_allowed(licence, &allowed))
        .map(|(name, licence)| format!("{name}: {licence}"))
        .collect();
    assert!(unknown.is_empty(), "licences that deny.toml does not allow: {unknown:#?}");
}

/// Evaluates an expression strictly: every part joined by AND needs an allowed alternative.
fn is_allowed(licence: &str, allowed: &[&str]) -> bool {
    let bare = licence.replace(['(', ')'], "").replace('/', " OR ");
    bare.split(" AND ").all(|part| part.split(" OR ").any(|one| allowed.contains(&one.trim())))
}

#[test]
fn licence_expressions_are_parsed_strictly() {
    let allowed = ["MIT", "Apache-2.0", "Unicode-3.0"];
    let cases = [
        "MIT",
        "GPL-3.0 OR MIT",
        "MIT/GPL-2.0",
        "(MIT OR GPL-2.0) AND Unicode-3.0",
        "MIT AND GPL-3.0",
        "none",
    ];
    let read = cases.map(|case| is_allowed(case, &allowed));
    assert_eq!(read, [true, true, true, true, false, false]);
}
