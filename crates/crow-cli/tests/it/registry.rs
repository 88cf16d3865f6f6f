//! The checks of the ACP registry: the first answer of the program without a configuration, and the icon; and the
//! addresses of `cargo binstall`.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Command, Stdio},
};

use serde_json::{Value, json};

#[test]
#[expect(clippy::disallowed_methods, reason = "the program is tested from outside")]
fn the_first_line_of_a_program_without_configuration_offers_a_login() {
    let home = tempfile::tempdir().expect("a directory");
    let mut command = Command::new(env!("CARGO_BIN_EXE_crow-cli"));
    command.arg("acp").current_dir(home.path()).env_clear().env("HOME", home.path());
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut agent = streams.spawn().expect("the program starts");
    let request = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": 1,
        "clientCapabilities": {"fs": {"readTextFile": false, "writeTextFile": false}, "auth": {"terminal": true}},
    }});
    let mut input = agent.stdin.take().expect("its input");
    writeln!(input, "{request}").expect("it reads");
    let mut line = String::new();
    let mut output = BufReader::new(agent.stdout.take().expect("its output"));
    output.read_line(&mut line).expect("it answers");
    drop(input);
    assert!(agent.wait().expect("it ends").success());

    let answer: Value = serde_json::from_str(&line).expect("the first line is the answer");
    let methods = answer["result"]["authMethods"].as_array().expect("ways to log in");
    let is_accepted = |method: &Value| {
        matches!(method["type"].as_str(), None | Some("agent" | "terminal"))
            || method["_meta"]["terminal-auth"].is_object()
    };
    assert!(methods.iter().any(is_accepted), "{methods:?}");
}

#[test]
fn the_icon_is_square_and_has_no_colours_of_its_own() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/registry/icon.svg");
    let icon = fs::read_to_string(path).expect("the icon");
    assert!(icon.contains(r#"width="16" height="16" viewBox="0 0 16 16""#), "{icon}");
    assert!(!icon.contains("<!--"), "{icon}");
    let attributes = ["fill=\"", "stroke=\"", "color=\""].into_iter();
    let colours = attributes.flat_map(|name| icon.split(name).skip(1)).map(|rest| rest.split('"').next());
    let own: Vec<&str> =
        colours.flatten().filter(|colour| !["currentColor", "none", "inherit"].contains(colour)).collect();
    assert!(own.is_empty(), "{own:?}");
}

/// Returns the names of the archives that a script packs, by their target triples.
fn archive_names(script: &str) -> BTreeMap<String, String> {
    let targets = script.split("Target(").skip(1).filter_map(|rest| {
        let words: Vec<&str> = rest.split('"').collect();
        let [_, triple, _, archive, _, _, _, system, ..] = words[..] else { return None };
        let extension = if system == "win32" { "zip" } else { "tar.gz" };
        triple.contains('-').then(|| (triple.to_owned(), format!("crow-cli-{archive}.{extension}")))
    });
    targets.collect()
}

#[test]
fn binstall_downloads_the_archives_that_are_packed() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let manifest: toml::Table = fs::read_to_string(manifest).expect("the manifest").parse().expect("TOML");
    let binstall = &manifest["package"]["metadata"]["binstall"];
    let targets = binstall["overrides"].as_table().expect("a table of targets");
    let names: BTreeMap<String, String> = targets
        .iter()
        .map(|(triple, target)| {
            let url = target["pkg-url"].as_str().expect("an address");
            let (release, name) = url.rsplit_once('/').expect("a path");
            assert_eq!(release, "https://github.com/crow-cli/crow-cli/releases/download/v{ version }");
            let format = target.get("pkg-fmt").or(binstall.get("pkg-fmt")).and_then(toml::Value::as_str);
            assert_eq!(format == Some("zip"), name.ends_with(".zip"), "{triple}");
            (triple.clone(), name.to_owned())
        })
        .collect();
    assert_eq!(names.len(), 7);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/build.py");
    assert_eq!(names, archive_names(&fs::read_to_string(script).expect("the script")));
    // The program is at the root of each archive.
    assert_eq!(binstall["bin-dir"].as_str(), Some("{ bin }{ binary-ext }"));
}
