use expect_test::{Expect, expect};

use super::*;
use crate::fixture::{fixture_project, mask_project_root};

const PLACE: &str = ".specify/extensions/agent-context/agent-context-config.yml";

#[track_caller]
fn check(text: &str, expect: &Expect) {
    let (_folder, project) = fixture_project(&[(PLACE, "context_markers: {start: '<<', end: '>>'}")]);
    let context = AgentContext::read(&project).unwrap().unwrap();
    let block = context.render_block(Some("specs/001-x/plan.md"));
    expect.assert_eq(&format!(
        "{:?}",
        context.upsert_block(text, Some("specs/001-x/plan.md")).replace(&block, "[BLOCK]")
    ));
}

#[track_caller]
fn check_files(yaml: &str, expect: &Expect) {
    let (_folder, project) = fixture_project(&[
        (PLACE, yaml),
        (".specify/init-options.json", r#"{"integration": "generic"}"#),
        (
            ".specify/extensions/agent-context/agent-context-defaults.json",
            r#"{"agents": {"generic": "AGENTS.md"}}"#,
        ),
    ]);
    expect.assert_eq(&match AgentContext::read(&project) {
        Ok(context) => format!("{:?}", context.unwrap().files),
        Err(error) => mask_project_root(&project, &error.to_string()),
    });
}

#[test]
fn block_replaces_the_old_one_or_is_appended() {
    check("", &expect![[r#""[BLOCK]""#]]);
    check("# A\n", &expect![[r##""# A\n\n[BLOCK]""##]]);
    check("# A", &expect![[r##""# A\n\n[BLOCK]""##]]);
    check("a\n<<\nold\n>>\nb\n", &expect![[r#""a\n[BLOCK]b\n""#]]);
    check("a\r\n<<\r\nold\r\n>>\r\nb\r\n", &expect![[r#""a\n[BLOCK]b\n""#]]);
    check("a\n<<\nhalf", &expect![[r#""a\n[BLOCK]""#]]);
    check("half\n>>\nb", &expect![[r#""[BLOCK]b""#]]);
    check("\u{feff}a\n", &expect![[r#""a\n\n[BLOCK]""#]]);
    check(">>a<<b>>c", &expect![[r#"">>a[BLOCK]c""#]]);
}

#[test]
fn block_contains_the_plan_and_is_stable() {
    let (_folder, project) = fixture_project(&[(PLACE, "")]);
    let context = AgentContext::read(&project).unwrap().unwrap();
    let once = context.upsert_block("# Project\n", Some("specs/001-x/plan.md"));
    expect![[r#"
        # Project

        <!-- SPECKIT START -->
        Before you change code, read the plan of the feature that is being built: it says what it is
        built with, where things are and which commands check it.
        The plan: specs/001-x/plan.md
        <!-- SPECKIT END -->
    "#]]
    .assert_eq(&once);
    assert_eq!(context.upsert_block(&once, Some("specs/001-x/plan.md")), once);
    assert!(!context.upsert_block(&once, None).contains("001-x"));
}

#[test]
fn files_are_those_of_the_settings_or_the_integration() {
    check_files("", &expect![[r#"["AGENTS.md"]"#]]);
    check_files("context_file: CLAUDE.md", &expect![[r#"["CLAUDE.md"]"#]]);
    check_files(
        "context_file: CLAUDE.md\ncontext_files: [a.md, ' b/c.md ', a.md, 3]",
        &expect![[r#"["a.md", "b/c.md"]"#]],
    );
    for file in ["/etc/x", "../x", "a/../../x", r"a\b"] {
        let (_folder, project) = fixture_project(&[(PLACE, &format!("context_file: '{file}'"))]);
        let error = AgentContext::read(&project).unwrap_err().to_string();
        assert!(error.ends_with("is not in this project"), "{error}");
    }
}

#[test]
fn settings_are_absent_without_the_extension() {
    let (_folder, project) = fixture_project(&[]);
    assert_eq!(AgentContext::read(&project).unwrap(), None);
}

#[cfg(unix)]
#[test]
fn context_file_behind_a_link_out_of_the_project_is_rejected() {
    use std::os::unix::fs::symlink;
    let outside = tempfile::tempdir().unwrap();
    for (link, to) in [("AGENTS.md", "gone.md"), ("docs", "")] {
        let (_folder, project) = fixture_project(&[(
            PLACE,
            &format!("context_file: {}", if to.is_empty() { "docs/A.md" } else { link }),
        )]);
        symlink(outside.path().join(to), project.root().join(link)).unwrap();
        let error = AgentContext::read(&project).unwrap_err().to_string();
        assert!(error.ends_with("is not in this project"), "{error}");
    }
}

#[cfg(unix)]
#[test]
fn block_is_rejected_in_executable_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let read = |yaml: &str| {
        let (_folder, project) = fixture_project(&[(PLACE, yaml), ("tool.md", "#!/bin/sh")]);
        let tool = project.root().join("tool.md");
        std::fs::set_permissions(tool, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::create_dir(project.root().join(".git")).unwrap();
        std::os::unix::fs::symlink(".git", project.root().join("docs")).unwrap();
        AgentContext::read(&project).map(drop).map_err(|error| error.to_string())
    };
    for file in ["AGENTS.md", ".github/copilot-instructions.md", ".cursor/rules/a.mdc", ".cursorrules"] {
        assert_eq!(read(&format!("context_file: {file}")), Ok(()), "{file}");
    }
    for file in [
        ".git/config",
        ".git/a.md",
        ".crow/prompts/a.md",
        ".specify/memory/constitution.md",
        "Makefile",
        "tool.md",
        "docs/a.md",
    ] {
        let error = read(&format!("context_file: {file}")).unwrap_err();
        assert!(error.contains("is not a context file"), "{error}");
    }
    for marker in [r#""a\nb""#, r#""\x1b""#, "' '", &"a".repeat(201)] {
        let error = read(&format!("context_file: A.md\ncontext_markers: {{start: {marker}}}")).unwrap_err();
        assert!(error.ends_with("a marker is one line of at most 200 bytes"), "{error}");
    }
}
