use expect_test::{Expect, expect};

use super::*;
use crate::fixture::{fixture_project, mask_project_root};

const SETTINGS: [(&str, &str); 4] = [
    (".specify/extensions/.registry", r#"{"extensions": {"jira": {}, "jira-cloud": {}}}"#),
    (
        ".specify/extensions/jira/extension.yml",
        "config: {defaults: {a: 1, deep: {x: one, y: true}, empty: null, list: [1]}}",
    ),
    (".specify/extensions/jira/jira-config.yml", "a: 2\ndeep: {x: two}\n"),
    (".specify/extensions/jira/local-config.yml", "deep: {z: three}\n"),
];

fn env(name: &str) -> Option<String> {
    let value = match name {
        "CI" => "yes",
        "EMPTY" => "",
        "SPECKIT_JIRA_URL" => "there",
        "SPECKIT_JIRA_CLOUD_KEY" => "theirs",
        "SPECKIT_JIRA_FLAT" => "word",
        _ => return None,
    };
    Some(value.to_owned())
}

#[track_caller]
fn check(yaml: &str, expect: &Expect) {
    let (_folder, project) = fixture_project(&[(".specify/extensions.yml", yaml)]);
    let said = match SpeckitHooks::read(&project) {
        Ok(hooks) => hooks
            .matching_hooks(HookTiming::Before, WorkflowCommand::Plan, &env)
            .iter()
            .map(|hook| {
                let way = if hook.is_optional { "offered" } else { "run" };
                format!(
                    "{way} {} of {}: {:?} {:?}\n",
                    hook.command, hook.extension, hook.prompt, hook.description
                )
            })
            .collect(),
        Err(error) => mask_project_root(&project, &error.to_string()),
    };
    expect.assert_eq(&said);
}

#[track_caller]
fn check_condition(condition: &str, does_hold: bool) {
    let (_folder, project) = fixture_project(&SETTINGS);
    let found = HookCondition::parse(condition).is_some_and(|found| found.is_met(&project, "jira", &env));
    assert_eq!(found, does_hold, "{condition}");
}

#[test]
fn hooks_are_sorted_by_priority_then_file_order() {
    check(
        "hooks:
  before_plan:
  - {extension: a, command: speckit.a.late, priority: 20}
  - {extension: a, command: speckit.a.one, optional: false, description: First}
  - {extension: b, command: speckit.b.two, priority: true, prompt: 'Do
      it?'}
  - {extension: b, command: speckit.b.early, priority: 1}
  - {extension: b, command: speckit.b.never, enabled: false}
  - {extension: b, command: '../../x', enabled: true}
  - {extension: b}
  - word
  after_plan:
  - {extension: a, command: speckit.a.after}
",
        &expect![[r#"
            offered speckit.b.early of b: "" ""
            run speckit.a.one of a: "" "First"
            offered speckit.b.two of b: "Do it?" ""
            offered speckit.a.late of a: "" ""
        "#]],
    );
}

#[test]
fn empty_and_broken_files() {
    check("", &expect![""]);
    check("# nothing\n", &expect![""]);
    check("hooks: 3", &expect![""]);
    check("hooks: {before_plan: {command: speckit.a.b}}", &expect![""]);
    check("hooks: [", &expect!["$DIR/.specify/extensions.yml cannot be used: line 1: unclosed bracket '['"]);
    check("- a", &expect!["$DIR/.specify/extensions.yml cannot be used: it is not a list of settings"]);
    let many = "  - {command: speckit.a.b}\n".repeat(HOOKS_MAX + 1);
    check(
        &format!("hooks:\n  before_plan:\n{many}"),
        &expect!["$DIR/.specify/extensions.yml cannot be used: it has more than 32 hooks for before_plan"],
    );
}

#[test]
fn conditions_decide_whether_a_hook_runs() {
    let hook = |condition: &str| {
        format!("hooks: {{before_plan: [{{command: speckit.a.b, condition: {condition}}}]}}")
    };
    for wanted in ["null", "''", "false", "env.CI is set"] {
        check(
            &hook(wanted),
            &expect![[r#"
            offered speckit.a.b of : "" ""
        "#]],
        );
    }
    for unwanted in ["true", "7", "env.NONE is set", "whenever", "[x]"] {
        check(&hook(unwanted), &expect![""]);
    }
}

#[test]
fn conditions_read_settings_and_the_environment() {
    check_condition("env.CI is set", true);
    check_condition(" ENV.ci   IS  SET ", true);
    check_condition("env.NONE is set", false);
    check_condition("env.EMPTY is set", true);
    check_condition("env.CI == 'yes'", true);
    check_condition("env.CI=='yes'", true);
    check_condition("env.CI != \"yes\"", false);
    check_condition("env.NONE != 'x'", true);
    for name in ["API_KEY", "a_token", "SECRET_X", "PASSWORD", "CREDENTIALS", "AUTH"] {
        for test in ["is set", "== 'x'", "!= 'x'"] {
            check_condition(&format!("env.{name} {test}"), false);
        }
    }
    check_condition("config.a is set", true);
    check_condition("config.a == '2'", true);
    check_condition("config.deep.x == 'two'", true);
    check_condition("config.deep.y == 'true'", true);
    check_condition("config.deep.z == 'three'", true);
    check_condition("config.deep.none is set", false);
    check_condition("config.none != 'x'", true);
    check_condition("config.empty is set", true);
    check_condition("config.list == '[1]'", false);
    check_condition("config.url == 'there'", true);
    check_condition("config.flat.x is set", false);
    check_condition("config.cloud.key is set", false);
    // Unsupported: several tests, no quotes, no name, other syntax.
    check_condition("config.a is set and env.NONE is set", false);
    check_condition("env.CI == yes", false);
    check_condition("env. is set", false);
    check_condition("env.CIis set", false);
    check_condition("env.CI > 'a'", false);
    check_condition("env.CI == ''", false);
    check_condition("files.x is set", false);
    check_condition("env.CI", false);
    check_condition("env.é is set", false);
    check_condition("", false);
}
