use clap::Parser;
use expect_test::{Expect, expect};

use super::*;
use crate::cli::{Cli, CliCommand, LazyArgs};

/// Runs commands in a project in a new directory and compares their output.
#[track_caller]
fn check(commands: &[&str], expected: &Expect) {
    let directory = tempfile::tempdir().unwrap();
    let root = crow_files::resolve_links(directory.path());
    let project = root.join("project");
    std::fs::create_dir_all(project.join(".git")).unwrap();
    std::fs::create_dir_all(project.join("sub")).unwrap();
    let dir = root.join("config");
    let prefix = |text: &str| Grant::RunPrefix(text.split(' ').map(str::to_owned).collect());
    let grants = GrantSet::from_iter([prefix("cargo test"), prefix("npm run build"), Grant::Edits]);
    set_permissions(&dir, &project, &grants).unwrap();
    let mut shown = String::new();
    for command in commands {
        let words = ["crow-cli", "permissions"].into_iter().chain(command.split_whitespace());
        let Some(CliCommand::Permissions(LazyArgs(args))) = Cli::try_parse_from(words).unwrap().command
        else {
            unreachable!()
        };
        let mut out = Vec::new();
        let done = run(&args, &dir, &project.join("sub"), &mut out);
        shown += &format!("$ permissions {command}\n{}", String::from_utf8(out).unwrap());
        if let Err(error) = done {
            let mut stderr = Vec::new();
            error.report(&mut stderr);
            shown += &String::from_utf8(stderr).unwrap();
        }
    }
    expected.assert_eq(&shown.replace(root.to_str().unwrap(), "$ROOT"));
}

#[test]
fn permissions_are_listed_and_revoked() {
    check(
        &["", "remove 2", "list", "remove 7", "clear", "", "clear"],
        &expect![[r#"
        $ permissions 
        $ROOT/project
          1. `cargo test …`
          2. `npm run build …`
          3. edits
        $ permissions remove 2
        `npm run build …` needs permission again in $ROOT/project
        $ permissions list
        $ROOT/project
          1. `cargo test …`
          2. edits
        $ permissions remove 7
        error: $ROOT/project has no permission number 7
        hint: `crow-cli permissions` lists the permissions
        $ permissions clear
        `cargo test …` needs permission again in $ROOT/project
        edits needs permission again in $ROOT/project
        $ permissions 
        no permanent permissions yet; permission requests offer them
        $ permissions clear
        error: there are no permanent permissions in $ROOT/project
        hint: `crow-cli permissions` lists the projects
    "#]],
    );
}

#[test]
fn permissions_are_listed_as_json() {
    check(
        &["-j", "remove 1 -j", "clear -j", "-j"],
        &expect![[r#"
        $ permissions -j
        {"project":"$ROOT/project","allow":[{"effect":"run_prefix","target":"cargo test"},{"effect":"run_prefix","target":"npm run build"},{"effect":"edit","target":"project"}]}
        $ permissions remove 1 -j
        {"project":"$ROOT/project","removed":[{"effect":"run_prefix","target":"cargo test"}]}
        $ permissions clear -j
        {"project":"$ROOT/project","removed":[{"effect":"run_prefix","target":"npm run build"},{"effect":"edit","target":"project"}]}
        $ permissions -j
    "#]],
    );
}
