use std::fs;
use std::sync::Arc;

use crow_core::PermissionRules;
use expect_test::{Expect, expect};

use super::*;
use crate::{RepositoryConfig, RepositoryConfigReader, VariableExpansion};

/// A repository without configuration.
#[derive(Debug)]
struct NoConfig;

impl RepositoryConfigReader for NoConfig {
    fn read_config(&self, _: &Path, _: &str, _: VariableExpansion<'_>) -> RepositoryConfig {
        RepositoryConfig::default()
    }
}

/// An empty configuration in `root/config`.
fn bare_sources(root: &Path) -> ConfigSources {
    let config_dir = crow_files::resolve_links(&root.join("config"));
    ConfigSources {
        prompts_dir: config_dir.join("prompts"),
        config_dir,
        skills_dir: None,
        rules: PermissionRules::default(),
        hooks: Vec::new(),
        repositories: Arc::new(NoConfig),
    }
}

fn render(cwd: &Path, sources: &ConfigSources, legacy_template: Option<&Path>) -> Result<String, Failure> {
    let facts = SystemPromptFacts {
        sources,
        legacy_template,
        addition: None,
        session: &SessionId::new("brave-otter"),
        cwd,
        more_roots: &[],
        has_core_tools: false,
        draw_tree: |_| "src/".to_owned(),
        find_nested_instructions: |_| Vec::new(),
        db_uri: "sqlite:////config/crow.db",
        table_schemas: "sessions (id)",
        date: "2026-01-02",
    };
    render_system_prompt(&facts).map(|rendered| rendered.text)
}

/// Creates files, renders the template in `cwd`, and compares the text.
#[track_caller]
fn check(files: &[(&str, &str)], cwd: &str, template: &str, expected: &Expect) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for (name, text) in files {
        let path = root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let sources = bare_sources(root);
    fs::create_dir_all(&sources.prompts_dir).unwrap();
    fs::write(sources.prompts_dir.join(TEMPLATE_NAME), template).unwrap();
    let rendered = render(&root.join(cwd), &sources, None).unwrap_or_else(|failure| failure.to_string());
    expected.assert_eq(&rendered.replace(&root.display().to_string(), "$ROOT"));
}

#[test]
fn instructions_are_not_rendered_as_a_template() {
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
fn unknown_name_is_an_error_unless_a_condition_asks_for_it() {
    let files = [("p/AGENTS.md", "Run the tests.")];
    check(
        &files,
        "p",
        "{% if extra %}{{ extra }}{% endif %}{{ agents_content }}",
        &expect!["Run the tests."],
    );
    check(
        &files,
        "p",
        "{{ agents_contents }}",
        &expect![
            "could not render the prompt template $ROOT/config/prompts/system.jinja2: undefined value: `agents_contents` is undefined (in <string>:1)"
        ],
    );
}

#[test]
fn template_error_gives_the_path() {
    check(
        &[("p/a", "")],
        "p",
        "{% if %}",
        &expect![
            "could not render the prompt template $ROOT/config/prompts/system.jinja2: syntax error: unexpected end of block (in <string>:1)"
        ],
    );
}

#[test]
fn built_in_template_is_equal_everywhere() {
    let directories = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let texts = directories
        .each_ref()
        .map(|directory| render(directory.path(), &bare_sources(directory.path()), None).unwrap());
    let [text, other_text] = &texts;
    assert!(text.starts_with("You are Crow"), "{text}");
    assert!(!text.contains("{{"), "{text}");
    assert!(crow_core::expects_context_parts(text), "{text}");
    assert_eq!(text, other_text, "it is equal in all directories");
}

#[test]
fn template_of_an_earlier_version_is_used_if_it_was_changed() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let sources = bare_sources(root);
    fs::create_dir_all(&sources.prompts_dir).unwrap();
    let begins = |legacy_template: Option<&Path>| {
        let text = render(root, &sources, legacy_template).unwrap();
        text.lines().next().unwrap_or_default().to_owned()
    };
    let ours = begins(None);
    assert!(ours.starts_with("You are Crow"), "{ours}");
    let earlier = sources.prompts_dir.join(LEGACY_NAME);
    fs::write(&earlier, "MINE {{ session_id }} {{ workspace }}{{ nothing }}").unwrap();
    assert_eq!(begins(None), format!("MINE brave-otter {}", root.display()));
    let named = Some(root.join("named.jinja2"));
    assert!(begins(named.as_deref()).starts_with("MINE"), "a path that names nothing is none");
    fs::write(root.join("named.jinja2"), "NAMED").unwrap();
    assert_eq!(begins(named.as_deref()), "NAMED");
    fs::write(sources.prompts_dir.join(TEMPLATE_NAME), "NEWER").unwrap();
    assert_eq!(begins(named.as_deref()), "NEWER");
}

#[test]
fn default_templates_of_earlier_versions_are_known_by_hash() {
    let hashes = ["ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"];
    assert!(has_known_hash(&hashes, "abc") && has_known_hash(&hashes, "\nabc \n"));
    assert!(
        !has_known_hash(&hashes, "abc, and a line of my own")
            && !has_known_hash(&LEGACY_DEFAULT_HASHES, TEMPLATE)
    );
}
