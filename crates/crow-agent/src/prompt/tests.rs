use std::fs;
use std::sync::Arc;

use crow_core::{Mode, NetworkAccess, PermissionRules, SandboxMode, TreeLimits, TurnLimits};
use crow_project::{RepositoryConfig, RepositoryConfigReader, VariableExpansion};
use expect_test::{Expect, expect};

use super::*;

/// A repository without configuration.
#[derive(Debug)]
struct NoConfig;

impl RepositoryConfigReader for NoConfig {
    fn read_config(&self, _: &Path, _: &str, _: VariableExpansion<'_>) -> RepositoryConfig {
        RepositoryConfig::default()
    }
}

/// An empty configuration in `root/config`.
fn bare_settings(root: &Path) -> AgentConfig {
    let config_dir = crow_files::resolve_links(&root.join("config"));
    AgentConfig {
        models: Vec::new(),
        mode: Mode::Ask,
        rules: PermissionRules::default(),
        limits: TurnLimits { requests_max: 1, compact_tokens_max: 1000 },
        secret_variables: Vec::new(),
        prompts_dir: config_dir.join("prompts"),
        skills_dir: None,
        system_prompt_path: None,
        system_prompt_addition: None,
        workflow: crow_workflow::WorkflowConfig::default(),
        sandbox: SandboxMode::default(),
        network: NetworkAccess::default(),
        mcp_servers: Vec::new(),
        mcp_auth_dir: config_dir.join("mcp-auth"),
        hooks: Vec::new(),
        repositories: Arc::new(NoConfig),
        agent_servers: Vec::new(),
        own_agent: None,
        tree_limits: TreeLimits::default(),
        depth: 0,
        worktrees_dir: config_dir.join("worktrees"),
        legacy_worktrees_dir: config_dir.join("former"),
        recordings_dir: None,
        spill_dir: config_dir.join("spill"),
        config_dir,
        db_uri: "sqlite:////config/crow.db".to_owned(),
        setup_hint: String::new(),
        notices: Vec::new(),
    }
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
    let settings = bare_settings(root);
    fs::create_dir_all(&settings.prompts_dir).unwrap();
    fs::write(settings.prompts_dir.join(TEMPLATE_NAME), template).unwrap();
    let session = SessionId::new("brave-otter");
    let rendered = match render_system_prompt(&root.join(cwd), &[], &session, &settings, "2026-01-02") {
        Ok(rendered) => rendered.text,
        Err(failure) => failure.to_string(),
    };
    expected.assert_eq(&rendered.replace(&root.display().to_string(), "$ROOT"));
}

#[test]
fn tree_shows_three_levels_without_ignored_files() {
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
fn template_can_use_the_database_address() {
    check(
        &[("p/a", "")],
        "p",
        "{{ db_uri }} {{ table_schemas.splitlines()[1] }}",
        &expect![
            "sqlite:////config/crow.db messages (id, session_id, turn, seq, role, data, input_tokens, output_tokens, created)"
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
fn built_in_template_renders() {
    let directory = tempfile::tempdir().unwrap();
    let session = SessionId::new("brave-otter");
    let text =
        render_system_prompt(directory.path(), &[], &session, &bare_settings(directory.path()), "2026-01-02")
            .unwrap()
            .text;
    assert!(text.starts_with("You are Crow"), "{text}");
    assert!(text.contains(&directory.path().display().to_string()), "{text}");
    assert!(!text.contains("{{"), "{text}");
}

#[test]
fn built_in_template_lists_skills_and_nested_instructions() {
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
    for (name, text) in [
        ("config/AGENTS.md", "Be brief."),
        ("config/skills/deploy/SKILL.md", "---\ndescription: Ships it.\n---\nDo it."),
        ("p/AGENTS.md", "The project."),
        ("p/a/b/AGENTS.md", "The part."),
    ] {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), text).unwrap();
    }
    let session = SessionId::new("brave-otter");
    let text = render_system_prompt(&root.join("p"), &[], &session, &bare_settings(&root), "2026-01-02")
        .unwrap()
        .text;
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

#[test]
fn template_of_an_earlier_version_is_used_if_it_was_changed() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let mut settings = bare_settings(root);
    fs::create_dir_all(&settings.prompts_dir).unwrap();
    let begins = |settings: &AgentConfig| {
        let rendered =
            render_system_prompt(root, &[], &SessionId::new("brave-otter"), settings, "2026-01-02").unwrap();
        rendered.text.lines().next().unwrap_or_default().to_owned()
    };
    let ours = begins(&settings);
    assert!(ours.starts_with("You are Crow"), "{ours}");
    let earlier = settings.prompts_dir.join(LEGACY_NAME);
    fs::write(&earlier, "MINE {{ session_id }} {{ workspace }}{{ nothing }}").unwrap();
    assert_eq!(begins(&settings), format!("MINE brave-otter {}", root.display()));
    settings.system_prompt_path = Some(root.join("named.jinja2"));
    assert!(begins(&settings).starts_with("MINE"), "a path that names nothing is none");
    fs::write(root.join("named.jinja2"), "NAMED").unwrap();
    assert_eq!(begins(&settings), "NAMED");
    fs::write(settings.prompts_dir.join(TEMPLATE_NAME), "NEWER").unwrap();
    assert_eq!(begins(&settings), "NEWER");
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

#[test]
fn template_can_use_variables_of_later_python_versions() {
    check(
        &[
            ("p/AGENTS.md", "be kind"),
            ("p/sub/AGENTS.md", "there"),
            ("config/skills/lint/SKILL.md", "# Lints\n"),
        ],
        "p",
        "{% for file in agents_full %}{{ file.path }}: {{ file.content }};{% endfor %} \
         {% for file in agents_catalog %}{{ file.path }} {{ file.preview.splitlines() | join(' ') }};{% endfor %} \
         {% for skill in skills %}{{ skill.name }}{% endfor %} {{ skills_dir }} {{ skills_roots | length }} {{ session_id }}",
        &expect!["AGENTS.md: be kind; sub/AGENTS.md ; lint $ROOT/config/skills 1 brave-otter"],
    );
}
