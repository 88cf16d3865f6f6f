use expect_test::{Expect, expect};

use super::*;
use crate::fixture::{fixture_project, mask_project_root};

#[track_caller]
fn check(files: &[(&str, &str)], expect: &Expect) {
    let (_folder, project) = fixture_project(files);
    let found = list_extension_commands(&project).unwrap();
    let commands = found
        .commands
        .iter()
        .map(|command| format!("{}: {} ({})\n", command.name, command.description, command.file.display()));
    let problems = found.problems.iter().map(|problem| format!("! {problem}\n"));
    expect.assert_eq(&mask_project_root(&project, &commands.chain(problems).collect::<String>()));
}

#[test]
fn commands_of_enabled_extensions_are_listed_and_broken_ones_reported() {
    check(
        &[
            (
                ".specify/extensions/.registry",
                r#"{"extensions": {"bug": {}, "off": {"enabled": false}, "git": {"priority": 1}}}"#,
            ),
            (
                ".specify/extensions/bug/extension.yml",
                "provides:
  commands:
  - {name: speckit.bug.fix, file: commands/fix.md, description: \"Fix  it\\e[31m\\nnow\"}
  - {name: speckit.bug.test, file: commands/test.md}
",
            ),
            (
                ".specify/extensions/git/extension.yml",
                "provides: {commands: [{name: speckit.git.commit, file: c.md}]}",
            ),
            (
                ".specify/extensions/off/extension.yml",
                "provides: {commands: [{name: speckit.off.x, file: c.md}]}",
            ),
            (
                ".specify/extensions/other/extension.yml",
                "provides: {commands: [{name: speckit.plan, file: c.md}]}",
            ),
            (
                ".specify/extensions/theirs/extension.yml",
                "provides: {commands: [{name: speckit.git.commit, file: c.md}]}",
            ),
            (
                ".specify/extensions/out/extension.yml",
                "provides: {commands: [{name: speckit.out.x, file: ../c.md}]}",
            ),
            (".specify/extensions/torn/extension.yml", "provides: ["),
            (".specify/extensions/words/extension.yml", "provides: {commands: x}"),
            (".specify/extensions/none/extension.yml", "extension: {id: none}"),
        ],
        &expect![[r#"
            speckit.git.commit:  (.specify/extensions/git/c.md)
            speckit.bug.fix: Fix it [31m now (.specify/extensions/bug/commands/fix.md)
            speckit.bug.test:  (.specify/extensions/bug/commands/test.md)
            ! $DIR/.specify/extensions/other/extension.yml cannot be used: the command "speckit.plan" is not named speckit.other.NAME
            ! $DIR/.specify/extensions/out/extension.yml cannot be used: the file "../c.md" of speckit.out.x leads out of the extension
            ! $DIR/.specify/extensions/theirs/extension.yml cannot be used: the command "speckit.git.commit" is not named speckit.theirs.NAME
            ! $DIR/.specify/extensions/torn/extension.yml cannot be used: line 1: unclosed bracket '['
            ! $DIR/.specify/extensions/words/extension.yml cannot be used: its commands are not a list
        "#]],
    );
}

#[test]
fn commands_are_empty_without_extensions() {
    check(&[], &expect![""]);
}
