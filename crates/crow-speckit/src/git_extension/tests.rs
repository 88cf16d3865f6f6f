use expect_test::{Expect, expect};

use super::*;
use crate::fixture::fixture_project;

const PLACE: &str = ".specify/extensions/git/git-config.yml";

fn config(yaml: &str) -> GitExtensionConfig {
    let (_folder, project) = fixture_project(&[(PLACE, yaml)]);
    GitExtensionConfig::read(&project).unwrap()
}

fn names(words: &str) -> Vec<String> {
    words.split_whitespace().map(str::to_owned).collect()
}

#[track_caller]
fn check(yaml: &str, there: &str, wish: BranchRequest<'_>, expect: &Expect) {
    let (directories, branches) = (names("001-a 004-b 20260101-101010-c 12-d"), names(there));
    let facts = BranchFacts {
        directories: &directories,
        branches: &branches,
        author: "Ada L.",
        project_name: "photo app",
    };
    expect.assert_eq(&match name_branch(&config(yaml), &facts, &wish) {
        Ok(branch) => branch.name,
        Err(error) => format!("error: {error}"),
    });
}

fn next(description: &str) -> BranchRequest<'_> {
    BranchRequest { number: BranchNumber::Next, short_name: None, description }
}

#[test]
fn branch_number_continues_after_directories_and_branches() {
    check("", "main", next("I want to add API for the DB"), &expect!["005-api-db"]);
    check(
        "",
        "010-x feature/011-y 20260101-101010-z 1234567-123456-w",
        next("a photo album"),
        &expect!["012-photo-album"],
    );
    check("", "99999999999999999999-x", next("one two three four five"), &expect!["005-one-two-three"]);
    let wish = BranchRequest { number: BranchNumber::Exact(7), short_name: Some("X_y z!"), description: "" };
    check("", "", wish, &expect!["007-x-y-z"]);
    let wish = BranchRequest { number: BranchNumber::Timestamp("20261122-030405"), ..next("sign in") };
    check("", "", wish, &expect!["20261122-030405-sign"]);
    check(
        "",
        "",
        next("写真"),
        &expect![
            "error: the description has no word for a branch name; give a short name of letters and digits"
        ],
    );
}

#[test]
fn template_scopes_have_their_own_numbers() {
    let template = "branch_template: '{author}/{app}/{number}-{slug}'";
    check(
        template,
        "010-x ada-l/photo-app/006-y other/009-z",
        next("sign in"),
        &expect!["ada-l/photo-app/007-sign"],
    );
    check(
        "branch_prefix: features/{app}/",
        "features/photo-app/020-x",
        next("sign in"),
        &expect!["features/photo-app/021-sign"],
    );
    for template in
        ["{slug}", "{slug}/{number}-x", "{number}/x", "x-{number}-{slug}", "{number}-{slug}-{number}"]
    {
        let facts = BranchFacts { directories: &[], branches: &[], author: "", project_name: "" };
        let config = config(&format!("branch_template: '{template}'"));
        let error = name_branch(&config, &facts, &next("sign in")).unwrap_err().to_string();
        assert!(error.starts_with("the branch_template"), "{error}");
    }
}

#[test]
fn branch_name_that_git_rejects_is_rejected() {
    for template in [
        "-f/{number}-x",
        "a..b/{number}-x",
        "a b/{number}-x",
        "a.lock/{number}-x",
        "/{number}-x",
        "@{/{number}-x",
        "a\\n/{number}-x",
    ] {
        let facts = BranchFacts { directories: &[], branches: &[], author: "", project_name: "" };
        let config = config(&format!("branch_template: \"{template}\""));
        assert!(name_branch(&config, &facts, &next("sign in")).is_err(), "{template}");
    }
    assert!(exact_branch_name("-D").is_err());
    assert!(exact_branch_name("").is_err());
    assert_eq!(exact_branch_name("feat/004-x").unwrap().name, "feat/004-x");
}

#[test]
fn long_branch_name_is_truncated() {
    let long = "word".repeat(80);
    let facts = BranchFacts { directories: &[], branches: &[], author: "", project_name: "" };
    let made =
        name_branch(&config(""), &facts, &BranchRequest { short_name: Some(&long), ..next("") }).unwrap();
    assert_eq!(made.name.len(), 244);
    let prefix = format!("branch_prefix: {}", "p".repeat(300));
    assert!(name_branch(&config(&prefix), &facts, &next("sign in")).is_err());
}

#[test]
fn commits_follow_the_settings() {
    let said = config(
        "auto_commit:\n  default: true\n  after_plan: {enabled: true, message: 'Plan it'}\n  after_tasks: {message: x}\n  \
         before_plan: true\n  before_tasks: no\n  after_clarify: {enabled: 'true'}\ncommit_style: conventional\n",
    );
    let message = |when, command| said.commit_message(when, command);
    assert_eq!(message(HookTiming::After, WorkflowCommand::Plan).as_deref(), Some("Plan it"));
    assert_eq!(message(HookTiming::After, WorkflowCommand::Tasks), None);
    assert_eq!(
        message(HookTiming::Before, WorkflowCommand::Plan).as_deref(),
        Some("Save the work before /speckit.plan")
    );
    assert_eq!(message(HookTiming::Before, WorkflowCommand::Tasks), None);
    assert_eq!(message(HookTiming::After, WorkflowCommand::Clarify), None);
    assert_eq!(
        message(HookTiming::After, WorkflowCommand::Specify).as_deref(),
        Some("Save the work after /speckit.specify")
    );
    assert_eq!(said.commit_style, CommitStyle::Conventional);
    let (_folder, project) = fixture_project(&[]);
    let usual = GitExtensionConfig::read(&project).unwrap();
    assert_eq!(usual.commit_message(HookTiming::After, WorkflowCommand::Plan), None);
    assert_eq!(usual.numbering, BranchNumbering::Sequential);
    assert_eq!(config("branch_numbering: timestamp").numbering, BranchNumbering::Timestamp);
}
