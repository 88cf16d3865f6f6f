#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use std::{fs, path::Path};

use crow_core::{Failure, FailureKind};
use crow_store::DatabaseAddress;
use expect_test::{Expect, expect};
use tempfile::TempDir;

use crate::{
    cli::InitArgs,
    init::{InitContext, find_python_config},
    settings::{Environment, Settings},
};

/// Written by the Python version's own `init`.
const CONFIG: &str = "mcpServers:
  crow-mcp:
    transport: stdio
    command: crow-cli
    args:
    - mcp
db_uri: sqlite:///~/.agents/crow/crow.db
providers:
  work:
    base_url: https://llm.work/v1
    api_key: ${WORK_API_KEY}
models:
  big:
    provider: work
    model: big-70b
    modality: [text, image]
MAX_COMPACT_TOKENS: 190000
max_retries_per_step: 3
skills_dir: ~/.agents/skills
";
/// One session with one message.
const PYTHON_DATABASE: &[u8] = include_bytes!("tests/python.db");
const ENV: &str = "WORK_API_KEY=sk-very-secret\n";

/// A home directory with the files the Python version leaves.
struct Home {
    directory: TempDir,
}

impl Home {
    fn new(config: &str) -> Self {
        let home = Self { directory: TempDir::new().unwrap() };
        home.write(".agents/crow/config.yaml", config);
        home
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    fn database(&self, name: &str) -> &Self {
        self.write(name, "");
        fs::write(self.directory.path().join(name), PYTHON_DATABASE).unwrap();
        self
    }

    fn env(&self) -> Environment {
        let home = self.directory.path().display().to_string();
        Environment::from([("HOME".to_owned(), home)])
    }

    fn run(&self, args: InitArgs) -> String {
        let list = async |_, _| Err(Failure::new(FailureKind::Connection, ""));
        let outside = InitContext { models: &crate::init::tests::Listed(list), servers: &[] };
        let mut log = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let dir = self.directory.path().join(".crow");
        if let Err(error) = runtime.block_on(crate::init::run(&args, &dir, &self.env(), &outside, &mut log)) {
            let code = error.report(&mut log);
            log.extend(format!("{code:?}\n").bytes());
        }
        String::from_utf8(log).unwrap().replace(&self.directory.path().display().to_string(), "~")
    }

    /// Lists the files below a directory with their contents and permissions.
    fn files(&self, below: &str) -> String {
        let mut lines = Vec::new();
        list(&self.directory.path().join(below), &mut lines);
        lines.sort();
        let text = lines.concat();
        text.replace(&self.directory.path().display().to_string(), "~")
    }
}

fn list(directory: &Path, lines: &mut Vec<String>) {
    for entry in fs::read_dir(directory).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            lines.push(format!("{}: a link\n", path.display()));
            continue;
        }
        if path.is_dir() {
            list(&path, lines);
            continue;
        }
        let bytes = fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        let shown = match text.trim_end() {
            text if text.starts_with("SQLite") => "a database",
            text if text == CONFIG.replace("db_uri", "# db_uri").trim_end() => "the same without its db_uri",
            text => text,
        };
        lines.push(format!("{}{}: {shown}\n", path.display(), mode(&path)));
    }
}

#[cfg(unix)]
fn mode(path: &Path) -> String {
    use std::os::unix::fs::PermissionsExt;
    format!(" {:o}", fs::metadata(path).unwrap().permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn mode(_path: &Path) -> String {
    String::new()
}

/// Imports the directory and renders the output and the resulting files; the source must not change.
#[track_caller]
fn check(home: &Home, wanted: Expect) {
    let before = home.files(".agents");
    let from = home.directory.path().join(".agents/crow");
    let output = home.run(InitArgs { yes: false, from: Some(from) });
    assert_eq!(home.files(".agents"), before);
    wanted.assert_eq(&format!("{output}--- ~/.crow\n{}", home.files(".crow")));
}

#[test]
fn import_copies_everything() {
    let home = Home::new(CONFIG);
    home.write(".agents/crow/.env", ENV)
        .database(".agents/crow/crow.db")
        .write(".agents/crow/prompts/review.md", "Review it.")
        .write(".agents/crow/images/a1.png", "png")
        .write(".agents/crow/logs/crow-cli.log", "long")
        .write(".agents/skills/lint/SKILL.md", "# Lints")
        .write(".agents/skills/lint/.venv/bin/python", "#!")
        .write(".agents/skills/crow-cli/SKILL.md", "# The Python version")
        .write(".agents/AGENTS.md", "Be brief.");
    assert!(find_python_config(&home.directory.path().join(".crow"), &home.env()).is_some());
    check(
        &home,
        expect![[r#"
            imported .env
            imported prompts
            imported images
            imported skills
            imported AGENTS.md
            imported crow.db
            imported config.yaml
            ~/.agents/crow is unchanged
            --- ~/.crow
            ~/.crow/.env 600: WORK_API_KEY=sk-very-secret
            ~/.crow/AGENTS.md 600: Be brief.
            ~/.crow/config.yaml 600: the same without its db_uri
            ~/.crow/crow.db 600: a database
            ~/.crow/images/a1.png 600: png
            ~/.crow/prompts/review.md 600: Review it.
            ~/.crow/skills/lint/SKILL.md 600: # Lints
        "#]],
    );
    let (settings, _) = Settings::load(&home.directory.path().join(".crow"), &home.env()).unwrap();
    let database = DatabaseAddress::File(home.directory.path().join(".crow/crow.db"));
    assert_eq!(settings.database, database);
    assert_eq!(settings.mcp_servers, []);
    let key = crow_model::ApiKey::new("sk-very-secret");
    assert_eq!(settings.find_model(None).unwrap().provider.api_key, Some(key));
    assert!(find_python_config(&home.directory.path().join(".crow"), &home.env()).is_none());
}

#[test]
fn existing_files_are_unchanged() {
    let home = Home::new(CONFIG);
    home.write(".agents/crow/.env", ENV)
        .database(".agents/crow/crow.db")
        .write(".agents/crow/prompts/review.md", "Review it.")
        .write(".agents/crow/prompts/new.md", "New.")
        .write(".crow/.env", "MINE=1")
        .write(".crow/crow.db", "mine")
        .write(".crow/prompts/review.md", "Mine.");
    check(
        &home,
        expect![[r#"
            note: .env already exists and is unchanged
            imported 1 of the 2 files of prompts
            note: the others already exist or are links
            note: crow.db already exists and is unchanged
            imported config.yaml
            ~/.agents/crow is unchanged
            --- ~/.crow
            ~/.crow/.env 644: MINE=1
            ~/.crow/config.yaml 600: the same without its db_uri
            ~/.crow/crow.db 644: mine
            ~/.crow/prompts/new.md 600: New.
            ~/.crow/prompts/review.md 644: Mine.
        "#]],
    );
    check(
        &home,
        expect![[r#"
            error: ~/.crow/config.yaml already exists
            hint: move it away, or give another --config-dir
            ExitCode(unix_exit_status(3))
            --- ~/.crow
            ~/.crow/.env 644: MINE=1
            ~/.crow/config.yaml 600: the same without its db_uri
            ~/.crow/crow.db 644: mine
            ~/.crow/prompts/new.md 600: New.
            ~/.crow/prompts/review.md 644: Mine.
        "#]],
    );
}

#[test]
fn configuration_that_needs_a_change_is_reported() {
    check(
        &Home::new("models:\n  big: { provider: missing }\n"),
        expect![[r#"
        imported config.yaml
        note: the configuration needs a change: ~/.crow/config.yaml:2: unknown provider "missing"; `providers` is empty
        ~/.agents/crow is unchanged
        --- ~/.crow
        ~/.crow/config.yaml 600: models:
          big: { provider: missing }
    "#]],
    );
    check(
        &Home::new("skills_dir: ~/x\n"),
        expect![[r#"
            imported config.yaml
            note: no model is configured; `crow-cli init` sets one up
            ~/.agents/crow is unchanged
            --- ~/.crow
            ~/.crow/config.yaml 600: skills_dir: ~/x
        "#]],
    );
}

#[test]
fn database_elsewhere_is_not_copied() {
    let home = Home::new("db_uri: sqlite:///~/data/crow.db\n");
    home.database("data/crow.db");
    check(
        &home,
        expect![[r#"
        note: the sessions stay in ~/data/crow.db, as configured in db_uri
        imported config.yaml
        note: no model is configured; `crow-cli init` sets one up
        ~/.agents/crow is unchanged
        --- ~/.crow
        ~/.crow/config.yaml 600: db_uri: sqlite:///~/data/crow.db
    "#]],
    );
}

#[test]
fn foreign_database_is_skipped() {
    let home = Home::new(CONFIG);
    home.write(
        ".agents/crow/crow.db",
        "Dear diary, it is raining again and again and again, and then it rains some more, all the year.",
    );
    check(
        &home,
        expect![[r#"
            note: crow.db was skipped: ~/.agents/crow/crow.db is not a database; move it away or name another file
            imported config.yaml
            ~/.agents/crow is unchanged
            --- ~/.crow
            ~/.crow/config.yaml 600: the same without its db_uri
        "#]],
    );
}

#[cfg(unix)]
#[test]
fn links_out_of_the_directory_are_not_followed() {
    use std::os::unix::fs::symlink;
    let home = Home::new(CONFIG);
    home.write("secret", "secret").database("other.db").write(".agents/crow/prompts/real.md", "Real.");
    let old = home.directory.path().join(".agents/crow");
    symlink("../../secret", old.join(".env")).unwrap();
    symlink("../../other.db", old.join("crow.db")).unwrap();
    symlink("../../../secret", old.join("prompts/linked.md")).unwrap();
    symlink("../..", old.join("images")).unwrap();
    check(
        &home,
        expect![[r#"
            note: .env was skipped: it is a link out of the directory
            imported 1 of the 2 files of prompts
            note: the others already exist or are links
            note: images was skipped: it is not a directory
            note: crow.db was skipped: it is a link out of the directory
            imported config.yaml
            ~/.agents/crow is unchanged
            --- ~/.crow
            ~/.crow/config.yaml 600: the same without its db_uri
            ~/.crow/prompts/real.md 600: Real.
        "#]],
    );
}

#[test]
fn import_without_a_source_fails() {
    let home = Home { directory: TempDir::new().unwrap() };
    assert_eq!(find_python_config(&home.directory.path().join(".crow"), &home.env()), None);
    assert_eq!(find_python_config(&home.directory.path().join(".crow"), &Environment::new()), None);
    check(
        &home,
        expect![[r#"
        error: could not open ~/.agents/crow: No such file or directory (os error 2)
        ExitCode(unix_exit_status(3))
        --- ~/.crow
    "#]],
    );
    home.write(".agents/crow/.env", ENV);
    check(
        &home,
        expect![[r#"
            error: could not read ~/.agents/crow/config.yaml: it does not exist
            hint: give the directory of the Python version with --from
            ExitCode(unix_exit_status(3))
            --- ~/.crow
        "#]],
    );
}

#[test]
fn python_configuration_is_only_mentioned_without_the_flag() {
    let home = Home::new(CONFIG);
    let output = home.run(InitArgs { yes: true, from: None });
    expect![[r#"
        note: ~/.agents/crow has a configuration of the Python version; import it with `--from ~/.agents/crow`
        error: no provider was found in the environment
        hint: set the key of a provider, such as ANTHROPIC_API_KEY or OPENAI_API_KEY, or LLM_<NAME>_API_KEY and LLM_<NAME>_BASE_URL, or start a server such as Ollama on this machine
        ExitCode(unix_exit_status(3))
    "#]]
    .assert_eq(&output);
    assert_eq!(home.files(".crow"), "");
}

#[test]
fn database_key_is_removed_or_nothing_is_imported() {
    for line in
        ["\"db_uri\": sqlite:///crow.db\n", "'db_uri' : sqlite:///crow.db\n", "db_uri : sqlite:///crow.db\n"]
    {
        let home = Home::new(line);
        home.database(".agents/crow/crow.db");
        let from = home.directory.path().join(".agents/crow");
        let output = home.run(InitArgs { yes: false, from: Some(from) });
        assert!(output.contains("imported crow.db"), "{output}");
        let text = fs::read_to_string(home.directory.path().join(".crow/config.yaml")).unwrap();
        assert_eq!(text, format!("# {line}"));
    }
    // A mistake elsewhere in the file is no reason to use the original database.
    for text in
        ["\n{db_uri: sqlite:///~/.agents/crow/crow.db}\n", "\n{db_uri: sqlite:///crow.db, models: 7}\n"]
    {
        let home = Home::new(text);
        home.database(".agents/crow/crow.db");
        let from = home.directory.path().join(".agents/crow");
        let output = home.run(InitArgs { yes: false, from: Some(from) });
        let wanted =
            "error: could not remove db_uri from ~/.agents/crow/config.yaml, line 2; nothing was imported\n";
        assert!(output.starts_with(wanted), "{output}");
        assert_eq!(home.files(".crow"), "");
    }
}

#[cfg(unix)]
#[test]
fn unreadable_files_are_listed_and_scripts_stay_executable() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new("skills_dir: ~/x\n");
    home.write(".agents/skills/lint/run.sh", "#!/bin/sh").write(".agents/skills/lint/SKILL.md", "# Lints");
    let script = home.directory.path().join(".agents/skills/lint/run.sh");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    check(
        &home,
        expect![[r#"
            imported skills
            imported config.yaml
            note: no model is configured; `crow-cli init` sets one up
            ~/.agents/crow is unchanged
            --- ~/.crow
            ~/.crow/config.yaml 600: skills_dir: ~/x
            ~/.crow/skills/lint/SKILL.md 600: # Lints
            ~/.crow/skills/lint/run.sh 700: #!/bin/sh
        "#]],
    );
}
