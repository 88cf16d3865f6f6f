use std::fs;

use expect_test::{Expect, expect};

use super::*;

/// Lays out files, renders the template with what it finds from `cwd`, and shows the text.
#[track_caller]
fn check(files: &[(&str, &str)], cwd: &str, template: &str, expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let prompts = root.join("prompts");
    fs::create_dir_all(&prompts).unwrap();
    fs::write(prompts.join(TEMPLATE_NAME), template).unwrap();
    let rendered = match render((&root.join(cwd), &[]), &prompts, "2026-01-02") {
        Ok(text) => text,
        Err(failure) => failure.to_string(),
    };
    expected.assert_eq(&rendered.replace(&root.display().to_string(), "$ROOT"));
}

#[test]
fn tree_shows_what_is_not_ignored_three_levels_deep() {
    check(
        &[
            ("p/.gitignore", "target\n"),
            ("p/target/a", ""),
            ("p/src/deep/er/est.rs", ""),
            ("p/src/main.rs", ""),
            ("p/README.md", ""),
        ],
        "p",
        "{{ display_tree }}",
        &expect![[r#"
            README.md
            src/
              deep/
                er/
              main.rs"#]],
    );
}

#[test]
fn instructions_come_from_the_root_of_the_repository_down() {
    check(
        &[
            ("AGENTS.md", "not ours"),
            ("p/.git/HEAD", ""),
            ("p/AGENTS.md", "whole project"),
            ("p/src/AGENTS.md", "this part"),
        ],
        "p/src",
        "{{ agents_content }}",
        &expect![[r#"
            whole project

            this part"#]],
    );
}

#[test]
fn without_a_repository_only_the_folder_itself_speaks() {
    check(
        &[("AGENTS.md", "not ours"), ("p/AGENTS.md", "ours")],
        "p",
        "{{ agents_content }}",
        &expect!["ours"],
    );
}

#[test]
fn text_of_a_file_is_no_template() {
    check(
        &[("p/AGENTS.md", "{{ 7 * 7 }}")],
        "p",
        "{{ agents_content }} {{ date }}",
        &expect!["{{ 7 * 7 }} 2026-01-02"],
    );
}

#[test]
fn templates_of_the_python_version_render() {
    check(
        &[("p/a", "")],
        "p",
        "{{ workspace }} {% if table_schemas %}{{ table_schemas }}{% endif %}{{ 'x '.strip() }}",
        &expect!["$ROOT/p x"],
    );
}

#[test]
fn a_broken_template_is_named() {
    check(
        &[("p/a", "")],
        "p",
        "{% if %}",
        &expect![
            "The prompt template $ROOT/prompts/system.jinja2 does not render: syntax error: unexpected end of block (in <string>:1)."
        ],
    );
}

#[test]
fn our_own_template_renders() {
    let folder = tempfile::tempdir().unwrap();
    let text = render((folder.path(), &[]), &folder.path().join("none"), "2026-01-02").unwrap();
    assert!(text.starts_with("You are Crow"), "{text}");
    assert!(text.contains(&folder.path().display().to_string()), "{text}");
    assert!(!text.contains("{{"), "{text}");
}
