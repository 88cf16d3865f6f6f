use expect_test::{Expect, expect};

use super::*;

#[track_caller]
fn check(name: &str, arguments: &str, expected: &Expect) {
    let shown = match SpeckitRequest::parse(name, arguments) {
        None => "none of ours".to_owned(),
        Some(Err(reason)) => format!("refused: {reason}"),
        Some(Ok(SpeckitRequest::Action(about))) => format!("{about:?}"),
        Some(Ok(SpeckitRequest::Extension { name, text })) => format!("/{name} of an extension {text:?}"),
        Some(Ok(SpeckitRequest::Step(CommandInvocation { command, feature, naming, text }))) => {
            let feature = feature.map(|feature| format!(" feature={feature:?}")).unwrap_or_default();
            let naming =
                if naming == FeatureNaming::default() { String::new() } else { format!(" {naming:?}") };
            format!("{command}{feature}{naming} {text:?}")
        }
    };
    expected.assert_eq(&shown);
}

#[test]
fn commands_have_two_spellings() {
    for command in WorkflowCommand::ALL {
        for separator in ['.', '-'] {
            let name = format!("speckit{separator}{}", command.as_str());
            let Some(Ok(SpeckitRequest::Step(read))) = SpeckitRequest::parse(&name, "x") else {
                panic!("{name} is none")
            };
            assert_eq!((read.command, read.text.as_str()), (command, "x"));
        }
    }
    let odd = ["speckitplan", "speckit.", "speckit.git.", "speckit.Plan", "spec", "specify"];
    let read = odd.map(|name| match SpeckitRequest::parse(name, "") {
        None => format!("{name}: none of ours"),
        Some(asked) => format!("{name}: {}", if asked.is_ok() { "a step" } else { "refused" }),
    });
    expect![[r#"
        speckitplan: none of ours
        speckit.: refused
        speckit.git.: none of ours
        speckit.Plan: refused
        spec: none of ours
        specify: none of ours"#]]
    .assert_eq(&read.join("\n"));
}

#[test]
fn arguments_are_preserved_byte_for_byte() {
    check(
        "speckit.specify",
        "Photos,\n\n  in albums: {{ 7*7 }} $ARGUMENTS  \n",
        &expect![[r#"/speckit.specify "Photos,\n\n  in albums: {{ 7*7 }} $ARGUMENTS  \n""#]],
    );
    check("speckit.clarify", "", &expect![[r#"/speckit.clarify """#]]);
}

#[test]
fn options_come_first() {
    check(
        "speckit.specify",
        "--short-name 'photo albums' --number=7 Sort photos --timestamp",
        &expect![[
            r#"/speckit.specify FeatureNaming { short_name: Some("photo albums"), number: Some(7), timestamp: false, directory: None, branch: None } "Sort photos --timestamp""#
        ]],
    );
    check(
        "speckit.specify",
        "--timestamp SPECIFY_FEATURE_DIRECTORY=specs/x GIT_BRANCH_NAME=me/1-x\nSort",
        &expect![[
            r#"/speckit.specify FeatureNaming { short_name: None, number: None, timestamp: true, directory: Some("specs/x"), branch: Some("me/1-x") } "Sort""#
        ]],
    );
    check("speckit.plan", "--feature 2 Rust", &expect![[r#"/speckit.plan feature="2" "Rust""#]]);
    check(
        "speckit.plan",
        "SPECIFY_FEATURE_DIRECTORY=specs/001-a",
        &expect![[r#"/speckit.plan feature="specs/001-a" """#]],
    );
}

#[test]
fn text_that_looks_like_an_option_is_text() {
    check("speckit.specify", "-- --number 7", &expect![[r#"/speckit.specify "--number 7""#]]);
    check("speckit.specify", "--verbose output", &expect![[r#"/speckit.specify "--verbose output""#]]);
    check("speckit.plan", "--number 7", &expect![[r#"/speckit.plan "--number 7""#]]);
    check("speckit.specify", "-x", &expect![[r#"/speckit.specify "-x""#]]);
}

#[test]
fn option_value_that_is_missing_or_wrong_is_rejected() {
    check("speckit.specify", "--number seven", &expect!["refused: --number needs a number, not seven."]);
    check("speckit.specify", "--short-name", &expect!["refused: --short-name needs a value."]);
    check("speckit.plan", "--feature= x", &expect!["refused: --feature needs a value."]);
}

#[test]
fn second_dot_is_an_extension_command() {
    check(
        "speckit.git.commit",
        "all of\nit",
        &expect![[r#"/speckit.git.commit of an extension "all of\nit""#]],
    );
}

#[test]
fn actions_of_the_workflow_are_parsed() {
    check("speckit", "", &expect!["Status"]);
    check("speckit", "use 002 ", &expect![[r#"Use("002")"#]]);
    check("speckit", "init", &expect!["Init"]);
    check("speckit", "use", &expect![[r#"Unknown("use")"#]]);
    check("speckit", "make tea", &expect![[r#"Unknown("make tea")"#]]);
}
