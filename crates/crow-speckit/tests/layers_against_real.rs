//! Compares this crate with the real Spec Kit on generated projects. `CROW_TEST_SPECIFY` is the path of its `specify`;
//! without it the tests print a message and pass.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "the oracle is a program, and the environment says where")]
#![expect(clippy::print_stderr, reason = "a person wants to know how much was compared")]

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command as Process, Stdio};

use crow_speckit::{
    AgentContext, BranchFacts, BranchNumber, BranchRequest, GitExtensionConfig, HookTiming, LayerOrigin,
    PromptKind, SpeckitHooks, SpeckitProject, WorkflowCommand, command_prompt, compose_page,
    extension_prompt, list_extension_commands, name_branch, page_layers, prompt_layers,
};
use serde_json::{Value, json};

/// The real tool needs 50 ms for a stack.
const STACKS: usize = 150;

/// The real tool, in one process for all requests.
struct Oracle {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Oracle {
    fn start() -> Option<Self> {
        let Some(specify) = std::env::var_os("CROW_TEST_SPECIFY") else {
            eprintln!("not compared: set CROW_TEST_SPECIFY to the path of the real specify");
            return None;
        };
        let mut child = Process::new(PathBuf::from(specify).with_file_name("python"))
            .args(["-c", include_str!("layers_against_real/oracle.py")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (questions, answers) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Some(Self { child, questions, answers: BufReader::new(answers) })
    }

    fn ask(&mut self, question: &Value) -> Value {
        writeln!(self.questions, "{question}").unwrap();
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap()
    }

    fn end(mut self, what: &str, n: usize) {
        drop(self.questions);
        assert!(self.child.wait().unwrap().success());
        eprintln!("compared: {n} {what}");
    }
}

/// A deterministic random number generator.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len())]
    }
}

fn write(root: &Path, place: &str, text: &str) {
    let path = root.join(place);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Generates a layer's text: sometimes with the placeholder, sometimes with two, sometimes with a malformed end.
fn layer(dice: &mut Dice, who: &str) -> String {
    let end = dice.one(&["\n", "", "\n\n", "\r\n", " é\n"]);
    dice.one(&["WHO", "[{CORE_TEMPLATE}]WHO", "WHO({CORE_TEMPLATE})<{CORE_TEMPLATE}>"]).replace("WHO", who)
        + end
}

/// Generates a registry whose entries have every known form, or a broken one.
fn registry(dice: &mut Dice, key: &str, ids: &[&str]) -> String {
    let mut entries = Vec::new();
    for id in ids {
        let priority = dice.one(&["1", "5", "10", "20", "0", "-3", "true", "\"4\"", "\"x\"", "null", "2.7"]);
        let enabled = dice.one(&["true", "true", "true", "false", "null", "\"no\"", "0"]);
        match dice.roll(8) {
            0 => {}
            1 => entries.push(format!("\"{id}\": {{\"version\": \"1.0.0\"}}")),
            _ => entries.push(format!(
                "\"{id}\": {{\"priority\": {priority}, \"enabled\": {enabled}, \"version\": \"1.0.0\"}}"
            )),
        }
    }
    match dice.roll(12) {
        0 => "{".to_owned(),
        1 => format!("{{\"{key}\": []}}"),
        _ => format!("{{\"schema_version\": \"1.0\", \"{key}\": {{{}}}}}", entries.join(", ")),
    }
}

/// Generates a registry that is not broken: with a broken one this part of the real tool finds nothing installed.
fn sound_registry(dice: &mut Dice) -> String {
    let text = registry(dice, "presets", &["d", "b", "a", "c-1"]);
    if text.contains("schema") { text } else { r#"{"presets": {"b": {}, "a": {}}}"#.to_owned() }
}

fn manifest(id: &str, entry: &str) -> String {
    format!(
        "schema_version: \"1.0\"\npreset: {{id: {id}, name: N, version: \"1.0.0\", description: D}}\n\
         requires: {{speckit_version: \">=0.1\"}}\nprovides:\n  templates:\n  - {{{entry}}}\n"
    )
}

/// Generates a project with a random stack for one name.
fn stack(dice: &mut Dice, root: &Path, kind: &str, name: &str) {
    let folder = if kind == "template" { "templates" } else { "commands" };
    for id in ["a", "b", "c-1", "d"] {
        let place = format!(".specify/presets/{id}");
        let file = dice.one(&["own/file.md", "x.md", "gone.md"]);
        let strategy = dice.one(&[
            "",
            ", strategy: prepend",
            ", strategy: append",
            ", strategy: wrap",
            ", strategy: replace",
        ]);
        match dice.roll(14) {
            0 | 1 => continue,
            2 => {
                write(root, &format!("{place}/{folder}/{name}.md"), &layer(dice, id));
                continue;
            }
            3 => write(
                root,
                &format!("{place}/preset.yml"),
                &manifest(id, &format!("type: {kind}, name: speckit.other, file: x.md")),
            ),
            4 if kind == "template" => write(
                root,
                &format!("{place}/preset.yml"),
                dice.one(&["[", "provides: 3", "provides: {templates: []}", ""]),
            ),
            _ => {
                let entry = format!("type: {kind}, name: {name}, file: {file}{strategy}");
                write(root, &format!("{place}/preset.yml"), &manifest(id, &entry));
            }
        }
        for file in ["own/file.md".to_owned(), "x.md".to_owned(), format!("{folder}/{name}.md")] {
            if dice.roll(3) > 0 {
                write(root, &format!("{place}/{file}"), &layer(dice, id));
            }
        }
    }
    if dice.roll(6) > 0 {
        write(root, ".specify/presets/.registry", &registry(dice, "presets", &["d", "b", "a", "c-1"]));
    }
    if dice.roll(8) == 0 {
        write(root, &format!(".specify/templates/overrides/{name}.md"), &layer(dice, "override"));
    }
}

fn extensions(dice: &mut Dice, root: &Path, name: &str) {
    for id in ["e", "f"] {
        if dice.roll(4) == 0 {
            let place = dice.one(&["", "templates/"]);
            write(root, &format!(".specify/extensions/{id}/{place}{name}.md"), &layer(dice, id));
        }
    }
    if dice.roll(2) == 0 {
        write(root, ".specify/extensions/.registry", &registry(dice, "extensions", &["f", "e"]));
    }
    if dice.roll(5) > 0 {
        write(root, &format!(".specify/templates/{name}.md"), &layer(dice, "core"));
    }
}

fn begun() -> (tempfile::TempDir, SpeckitProject) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(".specify")).unwrap();
    let project = SpeckitProject::from_root(folder.path().canonicalize().unwrap());
    (folder, project)
}

#[test]
fn page_templates_match_the_real_tool() {
    let Some(mut oracle) = Oracle::start() else { return };
    let (mut dice, mut n_pages, mut n_refused, mut n_stacks) = (Dice(1), 0, 0, 0);
    for n in 0..STACKS {
        let (_folder, project) = begun();
        stack(&mut dice, project.root(), "template", "x-template");
        extensions(&mut dice, project.root(), "x-template");
        let ours = compose_page(&project, None, "x-template").ok().map(|page| page.text);
        let theirs = oracle.ask(&json!(["page", project.root(), "x-template"]));
        assert_eq!(json!(ours), theirs, "stack {n} in {}", project.root().display());
        if n % 40 == 0 {
            let theirs = oracle.ask(&json!(["page_of_bash", project.root(), "x-template"]));
            assert_eq!(json!(ours), theirs, "stack {n} by bash");
        }
        n_pages += usize::from(ours.is_some());
        n_refused += usize::from(ours.is_none());
        // The list of layers comes from another part of the real tool, which skips broken ones.
        if let Ok(found) = page_layers(&project, None, "x-template")
            && fs::read_to_string(project.specify_path("presets/.registry"))
                .is_ok_and(|text| text.contains("{\"priority"))
        {
            let ours: Vec<_> =
                found.iter().map(|layer| json!([layer.file, layer.strategy.as_str()])).collect();
            assert_eq!(
                json!(ours),
                oracle.ask(&json!(["layers", project.root(), "x-template", "template"])),
                "{n}"
            );
            n_stacks += 1;
        }
    }
    oracle.end(&format!("pages ({n_refused} refused by both), {n_stacks} lists of layers"), n_pages);
}

#[test]
fn command_prompts_match_the_real_tool() {
    let Some(mut oracle) = Oracle::start() else { return };
    let (mut dice, mut n_prompts, mut n_ours) = (Dice(2), 0, 0);
    for n in 0..1000 {
        let (_folder, project) = begun();
        stack(&mut dice, project.root(), "command", "speckit.plan");
        write(project.root(), ".specify/presets/.registry", &sound_registry(&mut dice));
        let found = prompt_layers(&project, None, WorkflowCommand::Plan).unwrap();
        let theirs: Vec<_> = found.iter().filter(|layer| layer.origin != LayerOrigin::BuiltIn).collect();
        // Without a base in the project, each tool uses its built-in prompt.
        if !theirs.iter().any(|layer| layer.strategy.as_str() == "replace") {
            n_ours += 1;
            continue;
        }
        let ours = command_prompt(&project, None, WorkflowCommand::Plan).ok().map(|source| {
            // The real tool reads lines as Python does, without carriage returns.
            assert!(source.parts.iter().all(|part| part.kind == PromptKind::Markdown));
            source.parts.into_iter().map(|part| part.text).collect::<String>().replace("\r\n", "\n")
        });
        let theirs = oracle.ask(&json!(["command", project.root(), "speckit.plan"]));
        assert_eq!(json!(ours), theirs, "stack {n} in {}", project.root().display());
        n_prompts += 1;
    }
    oracle.end(&format!("prompts ({n_ours} had no base in the project)"), n_prompts);
}

const CONDITIONS: [&str; 18] = [
    "null",
    "''",
    "'config.a is set'",
    "'config.none is set'",
    "\"config.a == '2'\"",
    "\"config.deep.x != 'one'\"",
    "\"config.deep.y == 'true'\"",
    "'config.url is set'",
    "'config.cloud.key is set'",
    "'config.flat.x is set'",
    "'env.CROW_TEST_HERE is set'",
    "\"env.CROW_TEST_HERE == 'yes'\"",
    "\"env.crow_test_here != 'yes'\"",
    "\"env.CROW_TEST_NONE != 'x'\"",
    "whenever",
    "true",
    "[]",
    "'env.CROW_TEST_HERE == yes'",
];

/// Generates the project's settings for its extension `jira`.
fn settings(dice: &mut Dice, root: &Path) {
    let registry = r#"{"schema_version": "1.0", "extensions": {"jira": {}, "jira-cloud": {}}}"#;
    write(root, ".specify/extensions/.registry", registry);
    let manifest = "config: {defaults: {a: 1, flat: {x: 1}, deep: {x: one, y: true}}}";
    write(root, ".specify/extensions/jira/extension.yml", manifest);
    let said = dice.one(&["a: 2", "a: '2'", "[", "3", "deep: {x: two}"]);
    write(root, ".specify/extensions/jira/jira-config.yml", said);
    let said = dice.one(&["deep: {y: no}", "", "deep: 3", "b: on"]);
    write(root, ".specify/extensions/jira/local-config.yml", said);
}

fn hook(dice: &mut Dice, n: usize) -> String {
    let condition = dice.one(&CONDITIONS);
    let priority = dice.one(&["", "10", "1", "30", "true", "'2'", "0"]);
    let enabled = dice.one(&["true", "true", "true", "false", "no", "'no'"]);
    let optional = dice.one(&["true", "false", "off", "null", "''"]);
    format!(
        "  - {{extension: jira, command: speckit.jira.c{n}, condition: {condition}, priority: {priority}, \
         enabled: {enabled}, optional: {optional}}}\n"
    )
}

#[test]
fn hooks_match_the_real_tool() {
    let Some(mut oracle) = Oracle::start() else { return };
    let mut dice = Dice(3);
    let env = json!({
        "CROW_TEST_HERE": "yes", "SPECKIT_JIRA_URL": "u", "SPECKIT_JIRA_CLOUD_KEY": "k", "SPECKIT_JIRA_FLAT": "f"
    });
    let ours_of = |name: &str| env.get(name)?.as_str().map(str::to_owned);
    let mut n_wanted = 0;
    for n in 0..500 {
        let (_folder, project) = begun();
        let root = project.root();
        settings(&mut dice, root);
        let hooks: String = (0..dice.roll(9)).map(|n| hook(&mut dice, n)).collect();
        let yaml = format!("hooks:\n  before_plan:\n{hooks}");
        write(root, ".specify/extensions.yml", &yaml);
        let ours = SpeckitHooks::read(&project).unwrap().matching_hooks(
            HookTiming::Before,
            WorkflowCommand::Plan,
            &ours_of,
        );
        n_wanted += ours.len();
        let ours: Vec<_> = ours.iter().map(|hook| json!([hook.command, hook.is_optional])).collect();
        assert_eq!(json!(ours), oracle.ask(&json!(["hooks", root, "before_plan", env])), "{n}: {yaml}");
    }
    oracle.end(&format!("files of hooks, {n_wanted} hooks wanted"), 500);
}

const WORDS: [&str; 24] = [
    "add",
    "the",
    "API",
    "api",
    "DB",
    "to",
    "I",
    "Photo",
    "albums,",
    "für",
    "Größe",
    "写真",
    "x",
    "UI/UX",
    "a-b",
    "set_up",
    "2FA",
    "OAuth2",
    "éDBé",
    "!",
    "İstanbul",
    "login",
    "K",
    "9",
];

const BRANCHES: [&str; 10] = [
    "001-a",
    "012-b",
    "12-c",
    "0100-d",
    "20260101-101010-e",
    "1234567-123456-f",
    "main",
    "20260101-101010",
    "7-g",
    "1000-h",
];

const TEMPLATES: [&str; 7] = [
    "",
    "",
    "feat/{number}-{slug}",
    "{author}/{number}-{slug}",
    "x/y/{number}-z",
    "{slug}/{number}-x",
    "{number}",
];

fn names(dice: &mut Dice, scope: &str) -> Vec<String> {
    (0..dice.roll(5)).map(|_| format!("{}{}", dice.one(&["", scope]), dice.one(&BRANCHES))).collect()
}

#[test]
fn branches_match_the_real_tool() {
    let Some(mut oracle) = Oracle::start() else { return };
    let mut dice = Dice(4);
    let (mut n_made, mut n_refused) = (0, 0);
    let long = "w".repeat(300);
    for n in 0..3000 {
        let (_folder, project) = begun();
        let root = project.root();
        let directories = names(&mut dice, "");
        directories.iter().for_each(|name| fs::create_dir_all(root.join("specs").join(name)).unwrap());
        let scope = dice.one(&["", "feat/", "ada-l/", "x/y/"]);
        let branches = names(&mut dice, scope);
        let (template, prefix) = (dice.one(&TEMPLATES), dice.one(&["", "", "feat", "feat/", "{author}"]));
        let config = format!("branch_template: \"{template}\"\nbranch_prefix: '{prefix}' # c\n");
        write(root, ".specify/extensions/git/git-config.yml", &config);
        let description = (0..=dice.roll(7)).map(|_| dice.one(&WORDS)).collect::<Vec<_>>().join(" ");
        let short = match dice.roll(12) {
            0..=6 => None,
            7 => Some(long.as_str()),
            _ => Some(dice.one(&["X_y z!", "user-auth", "写真 a", "Ü1"])),
        };
        let number = (dice.roll(4) == 0).then(|| dice.roll(2000) as u64);
        let mut args = vec![description.clone()];
        args.extend(short.into_iter().flat_map(|short| ["--short-name".to_owned(), short.to_owned()]));
        args.extend(number.into_iter().flat_map(|number| ["--number".to_owned(), number.to_string()]));
        let theirs = oracle.ask(&json!(["branch", root, branches, "Ada L.", args]));
        let app = root.file_name().unwrap().to_str().unwrap();
        let facts = BranchFacts {
            directories: &directories,
            branches: &branches,
            author: "Ada L.",
            project_name: app,
        };
        let number = number.map_or(BranchNumber::Next, BranchNumber::Exact);
        let wish = BranchRequest { number, short_name: short, description: &description };
        let ours = name_branch(&GitExtensionConfig::read(&project).unwrap(), &facts, &wish)
            .ok()
            .map(|branch| branch.name);
        // If no words are left, the real tool makes a name without them; Crow rejects it.
        let is_empty = |name: &str| name.ends_with('-') || name.ends_with("-z");
        if ours.is_some() || !theirs.as_str().is_some_and(is_empty) {
            let asked = format!("{n}: {description:?} {short:?} {template:?} {prefix:?} {branches:?}");
            assert_eq!(json!(ours), theirs, "{asked}");
        }
        n_made += usize::from(ours.is_some());
        n_refused += usize::from(ours.is_none());
    }
    oracle.end(&format!("branches ({n_refused} refused)"), n_made);
}

/// Returns the layers of one kind as the real tool lists them: name, description, file of the first.
fn listed<'a>(all: &'a Value, kind: &str, layer: &str) -> Vec<(&'a str, &'a str, &'a str)> {
    let word =
        |value: &'a Value, place: &str| value.pointer(place).and_then(Value::as_str).unwrap_or_default();
    let of_kind = all.as_array().unwrap().iter().filter(|one| one["kind"] == kind);
    let of_layer = of_kind.filter(|one| one.pointer("/stack/0/layer").is_some_and(|found| found == layer));
    of_layer
        .map(|one| (word(one, "/name"), word(one, "/description"), word(one, "/stack/0/sourcePath")))
        .collect()
}

#[test]
fn project_of_the_real_tool_is_supported() {
    let Some(mut oracle) = Oracle::start() else { return };
    let (_folder, project) = begun();
    let all = oracle.ask(&json!(["begin", project.root()]));
    let found = list_extension_commands(&project).unwrap();
    assert_eq!(found.problems, Vec::<String>::new());
    let ours = found.commands.iter().map(|command| (&*command.name, &*command.description));
    let mut ours: Vec<_> = ours.collect();
    ours.sort_unstable();
    // The listed files are copies for an agent without extensions.
    let theirs = listed(&all, "command", "extension").into_iter().map(|(name, what, _)| (name, what));
    assert_eq!(ours, theirs.collect::<Vec<_>>());
    for command in &found.commands {
        let source = extension_prompt(&project, command).unwrap();
        // Its file and the manifest that contains it.
        assert!((2..=3).contains(&source.files.len()), "{} {:?}", command.name, source.files);
        let text = &source.parts[0].text;
        assert!(
            !text.starts_with("---") && !text.contains("__SPECKIT") && !text.contains("{SCRIPT}"),
            "{text}"
        );
    }
    let lean = listed(&all, "command", "preset");
    for command in WorkflowCommand::ALL {
        let source = command_prompt(&project, None, command).unwrap();
        let name = format!("speckit.{}", command.as_str());
        let theirs = lean.iter().find(|(theirs, ..)| *theirs == name).map(|(.., file)| PathBuf::from(file));
        assert_eq!(source.layers[0].file, theirs, "{name}");
    }
    let hooks = SpeckitHooks::read(&project).unwrap();
    let events = WorkflowCommand::ALL
        .into_iter()
        .flat_map(|command| [(HookTiming::Before, command), (HookTiming::After, command)]);
    let mut ours = Vec::new();
    for (when, command) in events {
        for hook in hooks.matching_hooks(when, command, &|_| None) {
            ours.push(format!("{}:{}", when.event_name(command), hook.command));
        }
    }
    ours.sort_unstable();
    let theirs: Vec<_> = listed(&all, "hook", "extension").into_iter().map(|(name, ..)| name).collect();
    assert_eq!(ours, theirs);
    assert!(
        GitExtensionConfig::read(&project)
            .unwrap()
            .commit_message(HookTiming::After, WorkflowCommand::Plan)
            .is_none()
    );
    assert_eq!(AgentContext::read(&project).unwrap().unwrap().files, [PathBuf::from("AGENTS.md")]);
    oracle.end(
        &format!("commands of extensions, {} hooks, {} commands of presets", ours.len(), lean.len()),
        found.commands.len(),
    );
}

#[test]
fn context_files_match_the_real_tool() {
    const PIECES: [&str; 9] = ["<<", ">>", "\n", "\r\n", "# Title", "text", "\u{feff}", "<<\nold\n>>\n", "é"];
    let Some(mut oracle) = Oracle::start() else { return };
    let mut dice = Dice(5);
    let (_folder, project) = begun();
    write(
        project.root(),
        ".specify/extensions/agent-context/agent-context-config.yml",
        "context_markers: {start: '<<', end: '>>'}",
    );
    let context = AgentContext::read(&project).unwrap().unwrap();
    let section = context.upsert_block("", Some("specs/001-x/plan.md"));
    for _ in 0..2000 {
        let text: String = (0..dice.roll(8)).map(|_| dice.one(&PIECES)).collect();
        let theirs = oracle.ask(&json!(["upsert", project.root(), text, section]));
        assert_eq!(json!(context.upsert_block(&text, Some("specs/001-x/plan.md"))), theirs, "{text:?}");
    }
    oracle.end("context files", 2000);
}
