use std::fs;
use std::path::{Path, PathBuf};
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
        tools_max: 128,
        models: Vec::new(),
        mode: Mode::Ask,
        rules: PermissionRules::default(),
        shell_name: "bash".to_owned(),
        search_path: String::new(),
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

fn located(cwd: PathBuf, more_roots: &[PathBuf]) -> SessionLocation {
    SessionLocation { cwd, additional_directories: more_roots.to_vec(), servers: Vec::new() }
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
    fs::write(settings.prompts_dir.join("system.jinja2"), template).unwrap();
    let session = SessionId::new("brave-otter");
    let rendered =
        match render_system_prompt(&located(root.join(cwd), &[]), &session, &settings, false, "2026-01-02") {
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
fn built_in_prompt_is_equal_in_all_sessions() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir_all(root.join("p")).unwrap();
    fs::write(root.join("p/AGENTS.md"), "be kind").unwrap();
    let settings = bare_settings(root);
    let render = |cwd: &str, more_roots: &[PathBuf], session: &str, date: &str| {
        let (location, session) = (located(root.join(cwd), more_roots), SessionId::new(session));
        render_system_prompt(&location, &session, &settings, false, date).unwrap().text
    };
    let prompt = render("", &[], "brave-otter", "2026-01-02");
    assert_eq!(render("p", &[root.join("q")], "calm-heron", "2026-12-31"), prompt);
}

#[test]
fn core_tools_have_a_short_prompt_unless_the_user_has_one() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let settings = bare_settings(root);
    let render = |has_core_tools| {
        let (location, session) = (located(root.to_owned(), &[]), SessionId::new("brave-otter"));
        render_system_prompt(&location, &session, &settings, has_core_tools, "2026-01-02").unwrap().text
    };
    let (all, core) = (render(false), render(true));
    assert!(crow_core::expects_context_parts(&core), "{core}");
    assert!(core.len() * 2 < all.len(), "{core}");
    fs::create_dir_all(&settings.prompts_dir).unwrap();
    fs::write(settings.prompts_dir.join("system.jinja2"), "Be good.").unwrap();
    assert_eq!((render(false), render(true)), ("Be good.".to_owned(), "Be good.".to_owned()));
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

#[test]
fn nested_files_are_listed_unless_ignored() {
    let directory = tempfile::tempdir().unwrap();
    let root = fs::canonicalize(directory.path()).unwrap();
    for name in ["AGENTS.md", "a/AGENTS.md", "a/b/AGENTS.md", "vendor/AGENTS.md"] {
        fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        fs::write(root.join(name), "ours").unwrap();
    }
    fs::write(root.join(".gitignore"), "vendor\n").unwrap();
    fs::create_dir(root.join("a/link")).unwrap();
    std::os::unix::fs::symlink("../AGENTS.md", root.join("a/link/AGENTS.md")).unwrap();
    let list = |cwd: &str| crow_tools::find_files_below(&root.join(cwd), INSTRUCTIONS_FILE, NESTED_MAX);
    assert_eq!(list(""), ["a/AGENTS.md", "a/b/AGENTS.md"]);
    // Those above a directory are not below it.
    assert_eq!(list("a/b"), Vec::<String>::new());
    // The file of a directory may link to one below it.
    fs::remove_file(root.join("AGENTS.md")).unwrap();
    std::os::unix::fs::symlink("a/AGENTS.md", root.join("AGENTS.md")).unwrap();
    assert_eq!(list(""), ["a/AGENTS.md", "a/b/AGENTS.md"]);
}
