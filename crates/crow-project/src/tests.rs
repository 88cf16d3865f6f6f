mod trust_review;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crow_core::{
    ContentPart, HookConfig, HookEvent, HookMatcher, McpServer, McpTransport, PermissionRule,
    PermissionRules, TrustAnswer, TrustLedger, TrustState, TrustSubject, evaluate_trust,
};
use expect_test::{Expect, expect};

use super::*;

/// Parses one item per line: `server NAME COMMAND`, `allow RULE`, `refused KEY`.
#[derive(Debug)]
struct Lines;

impl RepositoryConfigReader for Lines {
    fn read_config(&self, _: &Path, text: &str, variables: VariableExpansion<'_>) -> RepositoryConfig {
        let mut config = RepositoryConfig::default();
        for line in text.lines() {
            let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
            match (kind, rest.split_once(' ')) {
                ("server", Some((name, command))) => {
                    let command = match variables {
                        VariableExpansion::AsWritten => command.to_owned(),
                        VariableExpansion::Only(_) => command.replace("${X}", "replaced"),
                    };
                    let transport = McpTransport::Stdio { command, args: Vec::new(), env: Vec::new() };
                    config.servers.push(McpServer::new(name, transport));
                }
                ("hook", _) => config.hooks.push(HookConfig {
                    event: HookEvent::PreToolUse,
                    matcher: HookMatcher::default(),
                    command: rest.to_owned(),
                    timeout: std::time::Duration::from_secs(1),
                }),
                ("allow", _) => config.rules.allow.push(PermissionRule::parse(rest).unwrap()),
                ("refused", _) => config.rejected_keys.push(rest.to_owned()),
                _ => {}
            }
        }
        config
    }
}

/// An empty configuration in `root/config`.
fn bare_sources(root: &Path) -> ConfigSources {
    let config_dir = crow_files::resolve_links(&root.join("config"));
    ConfigSources {
        prompts_dir: config_dir.join("prompts"),
        skills_dir: None,
        rules: PermissionRules::default(),
        hooks: Vec::new(),
        repositories: Arc::new(Lines),
        config_dir,
    }
}

/// A user with a configuration and a repository `p`.
struct Stage {
    _folder: tempfile::TempDir,
    root: PathBuf,
}

impl Stage {
    fn new(files: &[(&str, &str)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let stage = Self { _folder: directory, root };
        fs::create_dir_all(stage.root.join("p/.git")).unwrap();
        for (name, text) in files {
            stage.write(name, text);
        }
        stage
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn survey(&self, cwd: &str) -> ConfigSurvey {
        ConfigSurvey::take_survey(&bare_sources(&self.root), &self.root.join(cwd))
    }

    /// Stores a decision about every file of the repository.
    fn say(&self, cwd: &str, word: TrustAnswer) {
        let survey = self.survey(cwd);
        let config_dir = self.root.join("config");
        trust_records::store_decision(&config_dir, &survey.scan.repository, survey.scan.files.iter(), word)
            .unwrap();
    }

    /// Renders the undecided files, the configuration and the notices.
    fn shown(&self, cwd: &str, session: &TrustLedger) -> String {
        let survey = self.survey(cwd);
        let unknown = survey.undecided_files(session);
        let asked: Vec<String> = unknown.iter().map(|file| format!("ask {}\n", file.subject.path)).collect();
        let (project_config, problems) = survey.into_project_config(session, ProjectConfig::default());
        let mut shown = asked.concat();
        for server in &project_config.servers {
            let McpTransport::Stdio { command, .. } = &server.transport else { continue };
            shown += &format!("server {} {command}\n", server.name);
        }
        shown += &project_config
            .rules
            .allow
            .iter()
            .map(|rule| format!("allow {}\n", rule.as_str()))
            .collect::<String>();
        for command in project_config.slash_commands() {
            let hint = command.hint.map(|hint| format!(" [{hint}]")).unwrap_or_default();
            shown += &format!("/{}{hint}: {}\n", command.name, command.description);
        }
        shown += &problems.iter().map(|problem| format!("! {problem}\n")).collect::<String>();
        shown.replace(&self.root.display().to_string(), "$ROOT")
    }

    #[track_caller]
    fn check(&self, expected: &Expect) {
        expected.assert_eq(&self.shown("p", &TrustLedger::default()));
    }
}

const WHOLE: &[(&str, &str)] = &[
    ("p/.crow/config.yaml", "server git git-${X}\nallow cargo test\nrefused providers"),
    ("p/.mcp.json", "server web web"),
    ("p/.crow/skills/deploy/SKILL.md", "---\nname: deploy\ndescription: Ships it.\n---\nRun ship.sh"),
    ("p/.agents/skills/lint/SKILL.md", "# Lints\n"),
    ("p/.claude/skills/deploy/SKILL.md", "---\ndescription: Another.\n---\n"),
    ("p/.crow/prompts/review.md", "---\ndescription: Reviews\nargument-hint: FILE\n---\nReview $1."),
    ("p/.crow/prompts/notes.txt", "nothing"),
];

#[test]
fn undecided_files_are_asked_about_and_not_used() {
    Stage::new(WHOLE).check(&expect![[r#"
        ask .crow/config.yaml
        ask .mcp.json
        ask .crow/skills/deploy/SKILL.md
        ask .agents/skills/lint/SKILL.md
        ask .claude/skills/deploy/SKILL.md
        ask .crow/prompts/review.md
        ! .crow/config.yaml sets keys that a repository cannot set, which are ignored: providers.
    "#]]);
}

#[test]
fn trusted_files_are_used_without_a_question() {
    let stage = Stage::new(WHOLE);
    stage.say("p", TrustAnswer::Trust);
    stage.check(&expect![[r#"
        server git git-replaced
        server web web
        allow cargo test
        /review [FILE]: Reviews
        /deploy: Ships it.
        /lint: Lints
        ! .crow/config.yaml sets keys that a repository cannot set, which are ignored: providers.
    "#]]);
}

#[test]
fn rejected_files_are_neither_used_nor_asked_about() {
    let stage = Stage::new(WHOLE);
    stage.say("p", TrustAnswer::Reject);
    stage.check(&expect![[r#"
        ! .crow/config.yaml sets keys that a repository cannot set, which are ignored: providers.
    "#]]);
}

#[test]
fn changed_file_is_asked_about_again_and_no_longer_used() {
    let stage = Stage::new(WHOLE);
    stage.say("p", TrustAnswer::Trust);
    stage.write("p/.mcp.json", "server web web ");
    stage.check(&expect![[r#"
        ask .mcp.json
        server git git-replaced
        allow cargo test
        /review [FILE]: Reviews
        /deploy: Ships it.
        /lint: Lints
        ! .crow/config.yaml sets keys that a repository cannot set, which are ignored: providers.
    "#]]);
    let survey = stage.survey("p");
    assert_eq!(survey.trust.approved_text(".mcp.json"), Some("server web web"));
    stage.write("p/.mcp.json", "server web web");
    assert!(
        stage.survey("p").undecided_files(&TrustLedger::default()).is_empty(),
        "it is the approved one again"
    );
}

#[test]
fn moved_file_needs_trust_again() {
    let stage = Stage::new(&[("p/.crow/prompts/a.md", "x")]);
    stage.say("p", TrustAnswer::Trust);
    fs::rename(stage.root.join("p/.crow/prompts/a.md"), stage.root.join("p/.crow/prompts/b.md")).unwrap();
    stage.check(&expect![[r#"
        ask .crow/prompts/b.md
    "#]]);
}

#[test]
fn trust_belongs_to_one_repository_at_one_path() {
    let stage =
        Stage::new(&[("p/.mcp.json", "server a a"), ("q/.mcp.json", "server a a"), ("q/.git/HEAD", "")]);
    stage.say("p", TrustAnswer::Trust);
    assert_eq!(stage.shown("p", &TrustLedger::default()), "server a a\n");
    assert_eq!(stage.shown("q", &TrustLedger::default()), "ask .mcp.json\n");
    fs::rename(stage.root.join("p"), stage.root.join("moved")).unwrap();
    assert_eq!(stage.shown("moved", &TrustLedger::default()), "ask .mcp.json\n");
    // Content in the place of a trusted file counts as itself.
    symlink(stage.root.join("q"), stage.root.join("p")).unwrap();
    assert_eq!(stage.shown("p", &TrustLedger::default()), "ask .mcp.json\n");
}

#[test]
fn subdirectory_adds_to_the_root_and_takes_precedence() {
    let stage = Stage::new(&[
        ("p/.crow/prompts/a.md", "of the root"),
        ("p/.crow/prompts/b.md", "of the root"),
        ("p/sub/.crow/prompts/a.md", "of the folder"),
    ]);
    stage.say("p/sub", TrustAnswer::Trust);
    expect![[r#"
        /a: of the folder
        /b: of the root
    "#]]
    .assert_eq(&stage.shown("p/sub", &TrustLedger::default()));
}

#[test]
fn user_files_need_no_trust_and_take_precedence() {
    let stage = Stage::new(&[
        ("config/skills/deploy/SKILL.md", "---\ndescription: Mine.\n---\n"),
        ("config/prompts/review.md", "Mine too."),
        ("config/prompts/system.jinja2", "no command"),
        ("p/.crow/skills/deploy/SKILL.md", "Theirs."),
        ("p/.crow/prompts/review.md", "Theirs."),
    ]);
    stage.say("p", TrustAnswer::Trust);
    stage.check(&expect![[r#"
        /review: Mine too.
        /deploy: Mine.
    "#]]);
}

#[test]
fn configuration_directory_is_not_part_of_a_repository() {
    let stage = Stage::new(&[("home/.crow/config.yaml", "server a a"), ("home/.crow/prompts/b.md", "mine")]);
    fs::create_dir(stage.root.join("config")).unwrap();
    let settings = ConfigSources { config_dir: stage.root.join("home/.crow"), ..bare_sources(&stage.root) };
    let survey = ConfigSurvey::take_survey(&settings, &stage.root.join("home"));
    assert_eq!(survey.scan.files.len(), 0, "{survey:?}");
}

#[test]
fn links_out_pipes_and_large_files_are_never_read() {
    let stage =
        Stage::new(&[("outside/SKILL.md", "x"), ("p/.crow/prompts/large.md", &"x".repeat(1024 * 1024 + 1))]);
    let skills = stage.root.join("p/.crow/skills");
    fs::create_dir_all(skills.join("out")).unwrap();
    symlink(stage.root.join("outside"), skills.join("folder")).unwrap();
    symlink(stage.root.join("outside/SKILL.md"), skills.join("out/SKILL.md")).unwrap();
    symlink("/dev/zero", stage.root.join("p/.crow/prompts/zero.md")).unwrap();
    // Opening a socket blocks as opening a pipe does.
    let _socket = std::os::unix::net::UnixListener::bind(stage.root.join("p/.mcp.json")).unwrap();
    fs::write(stage.root.join("p/.crow/prompts/bytes.md"), [0xff, 0xfe]).unwrap();
    stage.write("p/.crow/prompts/no name.md", "x");
    stage.check(&expect![[r#"
        ! .mcp.json of the repository is ignored: it is not a file.
        ! .crow/skills/folder/SKILL.md of the repository is ignored: it leads out of the repository.
        ! .crow/skills/out/SKILL.md of the repository is ignored: it leads out of the repository.
        ! .crow/prompts/bytes.md of the repository is ignored: it is not UTF-8 text.
        ! .crow/prompts/large.md of the repository is ignored: it is larger than 1048576 bytes.
        ! .crow/prompts/no name.md of the repository is ignored: the name is not valid for a command; use letters, digits, `-`, `_` and `.`.
        ! .crow/prompts/zero.md of the repository is ignored: it leads out of the repository.
    "#]]);
}

#[test]
fn directory_that_links_out_is_never_listed() {
    let stage = Stage::new(&[("outside/skills/a/SKILL.md", "x"), ("outside/config.yaml", "server a a")]);
    symlink(stage.root.join("outside"), stage.root.join("p/.crow")).unwrap();
    stage.check(&expect![[r#"
        ! .crow/config.yaml of the repository is ignored: it leads out of the repository.
    "#]]);
}

#[test]
fn skill_directories_are_readable_only_inside_the_skills() {
    let stage = Stage::new(&[
        ("config/skills/mine/SKILL.md", "x"),
        ("p/.agents/skills/lint/SKILL.md", "x"),
        ("p/src/SKILL.md", "x"),
    ]);
    let skills = stage.root.join("p/.claude/skills");
    fs::create_dir_all(&skills).unwrap();
    symlink("../../.agents/skills/lint", skills.join("linked")).unwrap();
    symlink("../../src", skills.join("source")).unwrap();
    symlink("../..", skills.join("whole")).unwrap();
    stage.write("p/SKILL.md", "x");
    stage.say("p", TrustAnswer::Trust);
    let (project_config, _) =
        stage.survey("p").into_project_config(&TrustLedger::default(), ProjectConfig::default());
    // Files created later are not read.
    fs::rename(stage.root.join("p/.agents"), stage.root.join("p/old")).unwrap();
    symlink("/etc", stage.root.join("p/.agents")).unwrap();
    let directories = project_config.skills.iter().map(|skill| {
        let directory = skill.directory.as_ref().map(|folder| folder.strip_prefix(&stage.root).unwrap());
        format!("{} {directory:?}\n", skill.name)
    });
    expect![[r#"
        mine Some("config/skills/mine")
        lint Some("p/.agents/skills/lint")
        linked Some("p/.agents/skills/lint")
        source None
        whole None
    "#]]
    .assert_eq(&directories.collect::<String>());
    assert_eq!(project_config.skill_folders().count(), 3);
}

#[test]
fn file_swapped_after_the_scan_is_not_used() {
    let stage = Stage::new(&[("p/.mcp.json", "server good good"), ("p/.crow/prompts/a.md", "good")]);
    let survey = stage.survey("p");
    let mut session = TrustLedger::default();
    for file in survey.undecided_files(&TrustLedger::default()) {
        session.record_answer(file.subject.clone(), TrustAnswer::Trust);
    }
    stage.write("p/.mcp.json", "server evil evil");
    stage.write("p/.crow/prompts/a.md", "evil");
    let (project_config, _) = survey.into_project_config(&session, ProjectConfig::default());
    assert_eq!(project_config.servers[0].name, "good");
    assert_eq!(project_config.prompts[0].body, "good");
    assert_eq!(stage.shown("p", &session), "ask .mcp.json\nask .crow/prompts/a.md\n");
}

/// A stored decision is only valid as a whole.
#[test]
fn invalid_record_trusts_nothing() {
    let stage = Stage::new(&[("p/.mcp.json", "server a a")]);
    stage.say("p", TrustAnswer::Trust);
    let directory = stage.root.join("config/trust");
    let file = fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
    let modes = [&directory, &file].map(|path| fs::metadata(path).unwrap().permissions().mode() & 0o777);
    assert_eq!(modes, [0o700, 0o600]);
    let good = fs::read_to_string(&file).unwrap();
    let p = stage.root.join("p").display().to_string();
    let broken = [
        good[..good.len() - 2].to_owned(),
        good.replace("\"yes\"", "\"perhaps\""),
        good.replace("server a a", "server b b"),
        good.replace(&p, "/elsewhere"),
        String::new(),
    ];
    for text in broken {
        fs::write(&file, &text).unwrap();
        let shown = stage.shown("p", &TrustLedger::default());
        assert!(
            shown.starts_with("ask .mcp.json\n! The trust decisions about this repository could not be read"),
            "{text}: {shown}"
        );
    }
    stage.say("p", TrustAnswer::Trust);
    assert_eq!(stage.shown("p", &TrustLedger::default()), "server a a\n");
}

#[test]
fn latest_decisions_about_a_path_are_stored() {
    let stage = Stage::new(&[]);
    for n in 0..20 {
        stage.write("p/.mcp.json", &format!("server a {n}"));
        stage.say("p", TrustAnswer::Trust);
    }
    let survey = stage.survey("p");
    assert_eq!(survey.trust.approved_text(".mcp.json"), Some("server a 19"));
    let trusted = (0..20).filter(|n| {
        let hash = crow_files::hash_content(format!("server a {n}").as_bytes());
        let supply = TrustSubject { path: ".mcp.json".into(), hash };
        evaluate_trust(&supply, &TrustLedger::default(), &survey.trust.ledger) == TrustState::Trusted
    });
    assert_eq!(trusted.collect::<Vec<_>>(), (12..20).collect::<Vec<_>>());
}

#[test]
fn command_expands_and_keeps_the_typed_text() {
    let stage = Stage::new(&[
        ("config/prompts/review.md", "---\ndescription: d\n---\nReview $1, then $2."),
        ("config/skills/deploy/SKILL.md", "Run ship.sh for $ARGUMENTS and print $1."),
    ]);
    let (project_config, _) =
        stage.survey("p").into_project_config(&TrustLedger::default(), ProjectConfig::default());
    let shown = |text: &str| {
        let link = ContentPart::Link { uri: "file:///x".into(), name: "x".into(), mime: None };
        let parts = project_config.expand_prompt(vec![ContentPart::Text(text.to_owned()), link]);
        let parts = parts.iter().map(|part| match part {
            ContentPart::Text(text) => format!("text {text:?}\n"),
            ContentPart::FromCrow { kind: what, text } => format!("{what} {text:?}\n"),
            ContentPart::Link { .. } | ContentPart::Image { .. } | ContentPart::Resource { .. } => {
                "link\n".to_owned()
            }
        });
        parts.collect::<String>().replace(&stage.root.display().to_string(), "$ROOT")
    };
    let all =
        ["/review a.rs\nb.rs", "/deploy the site", "/nothing x", "/etc/hosts is broken", "review"].map(shown);
    expect![[r#"
        text "/review a.rs\nb.rs"
        command/review "The command /review stands for this:\n\nReview a.rs, then b.rs."
        link
        text "/deploy the site"
        command/deploy "The command /deploy asks for this skill. Paths in it start in $ROOT/config/skills/deploy.\n\nRun ship.sh for the site and print $1."
        link
        text "/nothing x"
        link
        text "/etc/hosts is broken"
        link
        text "review"
        link
    "#]].assert_eq(&all.concat());
}
