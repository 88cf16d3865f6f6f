use std::fs;

use expect_test::{Expect, expect};

use super::*;
use crate::supplies::bare_settings;

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
    let settings = bare_settings(root);
    fs::create_dir_all(&settings.prompts_dir).unwrap();
    fs::write(settings.prompts_dir.join(TEMPLATE_NAME), template).unwrap();
    let rendered = match render((&root.join(cwd), &[]), &settings, "2026-01-02") {
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
        "{{ workspace }} {% if table_schemas %}with tables{% endif %} {{ 'x '.strip() }}",
        &expect!["$ROOT/p with tables x"],
    );
}

#[test]
fn a_template_may_name_the_database() {
    check(
        &[("p/a", "")],
        "p",
        "{{ db_uri }} {{ table_schemas.splitlines()[1] }}",
        &expect![
            "sqlite:////config/crow.db messages (id, session_id, seq, role, data, input_tokens, output_tokens, created)"
        ],
    );
}

#[test]
fn a_broken_template_is_named() {
    check(
        &[("p/a", "")],
        "p",
        "{% if %}",
        &expect![
            "The prompt template $ROOT/config/prompts/system.jinja2 does not render: syntax error: unexpected end of block (in <string>:1)."
        ],
    );
}

#[test]
fn our_own_template_renders() {
    let folder = tempfile::tempdir().unwrap();
    let text = render((folder.path(), &[]), &bare_settings(folder.path()), "2026-01-02").unwrap();
    assert!(text.starts_with("You are Crow"), "{text}");
    assert!(text.contains(&folder.path().display().to_string()), "{text}");
    assert!(!text.contains("{{"), "{text}");
}

#[test]
fn our_own_template_names_skills_and_nested_instructions() {
    let folder = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(folder.path()).unwrap();
    for (name, text) in [
        ("config/AGENTS.md", "Be brief."),
        ("config/skills/deploy/SKILL.md", "---\ndescription: Ships it.\n---\nDo it."),
        ("p/AGENTS.md", "The project."),
        ("p/a/b/AGENTS.md", "The part."),
    ] {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    }
    let text = render((&root.join("p"), &[]), &bare_settings(&root), "2026-01-02").unwrap();
    let text = text.replace(&root.display().to_string(), "$ROOT");
    let (_, end) = text.split_once("(AGENTS.md):").unwrap();
    expect![[r#"

        Be brief.

        The project.

        More instructions stand in these files. Read one before you work below its folder:
        - a/b/AGENTS.md

        Skills. When the work fits a description, read the file first and follow it; paths in it start in its folder.
        - deploy: Ships it. ($ROOT/config/skills/deploy/SKILL.md)"#]].assert_eq(end);
}
