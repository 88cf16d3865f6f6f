use super::*;

#[track_caller]
fn check(text: &str, is: &str) {
    assert_eq!(rewrite_command_names(&rewrite_paths(text, ".specify/scripts/")), is);
}

#[test]
fn paths_are_relative_to_the_projects_root() {
    check("scripts/a", ".specify/scripts/a");
    check(
        "run ./scripts/a, (memory/b) `templates/c`",
        "run .specify/scripts/a, (.specify/memory/b) `.specify/templates/c`",
    );
    check("/memory/constitution.md", ".specify/memory/constitution.md");
    check("x=/memory/a", "x=.specify/memory/a");
    check("../../templates/x", ".specify/templates/x");
    check("see:../../../scripts/x", "see:.specify/scripts/x");
    check("\nmemory/ memory/", "\n.specify/memory/ .specify/memory/");
}

#[test]
fn other_paths_are_unchanged() {
    for text in [
        "../scripts/a",
        "myscripts/a",
        ".specify/scripts/a",
        "`.specify/memory/a`",
        "docs/templates/a",
        "a../../scripts/x",
        "my-memory/a",
        "templates",
        "é/scripts/",
    ] {
        check(text, text);
    }
}

#[test]
fn command_references_become_typed_names() {
    check("__SPECKIT_COMMAND_PLAN__", "/speckit.plan");
    check("`__SPECKIT_COMMAND_GIT_COMMIT__`.", "`/speckit.git.commit`.");
    check("__SPECKIT_COMMAND_AGENT-CONTEXT_UPDATE__", "/speckit.agent-context.update");
    for text in
        ["__SPECKIT_COMMAND_", "__SPECKIT_COMMAND___", "__SPECKIT_COMMAND_plan__", "__SPECKIT_COMMAND_PLAN_"]
    {
        check(text, text);
    }
}
