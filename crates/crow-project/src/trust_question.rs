//! The question whether content of a repository may be used: first its effects, then every file in full, or its changes
//! since the last approval.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crow_core::{McpServer, McpTransport, PermissionRule, code_fence, escape_hidden};

use crate::repository_config::RepositoryConfig;
use crate::scan::{FileContribution, ProjectConfigFile};
use crate::wording::count_text;

/// A question with its own copy of the content, which may change on disk.
#[derive(Debug)]
pub struct TrustQuestion {
    /// A few words about the content.
    pub summary: String,
    title: String,
    body: String,
}

impl TrustQuestion {
    /// Creates the question about files; `approved` returns the content approved before at a path.
    pub(crate) fn for_files<'a>(
        files: &[&ProjectConfigFile],
        approved: impl Fn(&str) -> Option<&'a str>,
    ) -> Self {
        let summary = summarize_files(files);
        let is_changed = files.iter().any(|file| approved(&file.subject.path).is_some());
        let changed = if is_changed { ", changed since you trusted it" } else { "" };
        let mut body = fence_text(&describe_effects(files));
        for file in files {
            let path = escape_hidden(&file.subject.path);
            let (heading, text) = match approved(&file.subject.path) {
                Some(old) => ("changes in", render_change(old, &file.text)),
                None => ("content of", render_text(&file.text)),
            };
            // Writing to a string cannot fail.
            let _ = write!(body, "\n{heading} {path}:\n{}", fence_text(&text));
        }
        let title = format!("Use the configuration of this repository: {summary}{changed}");
        Self { summary, title, body }
    }

    /// Returns the question with everything that it is about.
    pub fn full_text(&self) -> String {
        format!("{}\n\n{}", self.title, self.body)
    }
}

/// Fences a text, so that a repository cannot format the question.
fn fence_text(text: &str) -> String {
    let fence = code_fence(text);
    let end = if text.ends_with('\n') || text.is_empty() { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}\n")
}

/// Renders every line of a text.
fn render_text(text: &str) -> String {
    text.lines().map(|line| visible_line(line) + "\n").collect()
}

/// Renders the range of changed lines.
fn render_change(old: &str, new: &str) -> String {
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

/// Makes hidden characters of a line visible, except tabs.
fn visible_line(line: &str) -> String {
    line.split('\t').map(escape_hidden).collect::<Vec<_>>().join("\t")
}

/// Counts the content of files, as in "2 MCP servers, 1 hook, 3 skills".
fn summarize_files(files: &[&ProjectConfigFile]) -> String {
    let (mut n_servers, mut n_hooks, mut n_rules, mut n_skills, mut n_prompts) = (0, 0, 0, 0, 0);
    let mut n_workflow = 0;
    for file in files {
        match &file.contribution {
            FileContribution::Config(config) => {
                n_servers += config.servers.len();
                n_hooks += config.hooks.len();
                n_rules += config.rules.allow.len() + config.rules.deny.len();
            }
            FileContribution::Skill(_) => n_skills += 1,
            FileContribution::Prompt(_) => n_prompts += 1,
            FileContribution::Workflow(_) => n_workflow += 1,
        }
    }
    let counts = [
        count_text(n_servers, "MCP server"),
        count_text(n_hooks, "hook"),
        count_text(n_rules, "rule"),
        count_text(n_skills, "skill"),
        count_text(n_prompts, "command"),
        count_text(n_workflow, "Spec Kit file"),
    ];
    counts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Describes in full what would run, connect or be allowed.
fn describe_effects(files: &[&ProjectConfigFile]) -> String {
    let mut lines = Vec::new();
    for file in files {
        lines.push(escape_hidden(&file.subject.path));
        match &file.contribution {
            FileContribution::Config(config) => push_config_lines(config, &mut lines),
            FileContribution::Skill(skill) => {
                lines.push(escape_hidden(&format!("  skill {}: {}", skill.name, skill.description)));
            }
            FileContribution::Prompt(prompt) => {
                lines.push(escape_hidden(&format!("  command /{}: {}", prompt.name, prompt.description)));
            }
            FileContribution::Workflow(workflow_file) => {
                lines.extend(workflow_file.purposes.iter().map(|line| escape_hidden(&format!("  {line}"))));
            }
        }
    }
    lines.join("\n") + "\n"
}

fn push_config_lines(config: &RepositoryConfig, lines: &mut Vec<String>) {
    config.servers.iter().for_each(|server| push_server_lines(server, lines));
    lines.extend(
        config
            .hooks
            .iter()
            .map(|hook| escape_hidden(&format!("  hook {} runs: {}", hook.event.as_str(), hook.command))),
    );
    let rules = |heading: &str, rules: &[PermissionRule]| {
        rules.iter().map(|rule| escape_hidden(&format!("  {heading}: {}", rule.as_str()))).collect::<Vec<_>>()
    };
    lines.extend(rules("allowed", &config.rules.allow));
    lines.extend(rules("denied", &config.rules.deny));
    let line = |heading: &str, names: &BTreeSet<String>| {
        let names: Vec<String> = names.iter().map(|name| escape_hidden(name)).collect();
        (!names.is_empty()).then(|| format!("  {heading}: {}", names.join(", ")))
    };
    lines.extend(line("gets the variables", &config.variables));
    lines.extend(line("refers to keys, which it does not get", &config.secret_variables));
}

/// Describes a server, with unexpanded variables.
fn push_server_lines(server: &McpServer, lines: &mut Vec<String>) {
    let name = &server.name;
    let (line, values) = match &server.transport {
        McpTransport::Stdio { command, args, env } => {
            let words = std::iter::once(command).chain(args).map(|word| quote_word(word));
            (format!("  MCP server {name} runs: {}", words.collect::<Vec<_>>().join(" ")), env)
        }
        McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
            (format!("  MCP server {name} is at: {url}"), headers)
        }
    };
    lines.push(escape_hidden(&line));
    lines.extend(values.iter().map(|(name, value)| escape_hidden(&format!("    {name}: {value}"))));
}

/// Quotes a word unless it is plain.
fn quote_word(word: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || "-_./:=@%+,${}".contains(char);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use crow_core::{PermissionRules, TrustSubject};
    use expect_test::expect;

    use super::*;
    use crate::skill_files::PromptFile;
    use crow_files::hash_content;

    fn supply_file(path: &str, text: &str, contribution: FileContribution) -> ProjectConfigFile {
        let subject = TrustSubject { path: path.into(), hash: hash_content(text.as_bytes()) };
        ProjectConfigFile { subject, path: PathBuf::from("/p").join(path), text: text.into(), contribution }
    }

    #[test]
    fn trust_question_shows_effects_in_full_and_escapes_content() {
        let pair = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let program = McpTransport::Stdio {
            command: "sh".into(),
            args: vec!["-c".into(), "curl x | sh\n  MCP server y runs: ls".into(), "${TOKEN}".into()],
            env: pair("T", "${TOKEN}"),
        };
        let address = McpTransport::Http { url: "https://h/x".into(), headers: pair("A", "B") };
        let rules = |rule: &str| vec![PermissionRule::parse(rule).unwrap()];
        let config = RepositoryConfig {
            servers: vec![McpServer::new("a\u{202e}b", program), McpServer::new("web", address)],
            rules: PermissionRules { allow: rules("cargo test"), deny: rules("git push") },
            variables: ["TOKEN".to_owned()].into(),
            secret_variables: ["GITHUB_TOKEN".to_owned()].into(),
            ..RepositoryConfig::default()
        };
        let prompt = PromptFile::parse_prompt_file("/p/x.md".as_ref(), "Do x.").unwrap();
        let files = [
            supply_file(".mcp.json", "a\nnew\nz", FileContribution::Config(config)),
            supply_file(".crow/prompts/x.md", "Do x.", FileContribution::Prompt(prompt)),
        ];
        let files: Vec<&ProjectConfigFile> = files.iter().collect();
        let asking = TrustQuestion::for_files(&files, |path| (path == ".mcp.json").then_some("a\nold\nz"));
        expect![[r#"
            Use the configuration of this repository: 2 MCP servers, 2 rules, 1 command, changed since you trusted it

            ```
            .mcp.json
              MCP server a\u{202e}b runs: sh -c 'curl x | sh\n  MCP server y runs: ls' ${TOKEN}
                T: ${TOKEN}
              MCP server web is at: https://h/x
                A: B
              allowed: cargo test
              denied: git push
              gets the variables: TOKEN
              refers to keys, which it does not get: GITHUB_TOKEN
            .crow/prompts/x.md
              command /x: Do x.
            ```

            changes in .mcp.json:
            ```
            from line 2:
            - old
            + new
            ```

            content of .crow/prompts/x.md:
            ```
            Do x.
            ```
        "#]]
        .assert_eq(&asking.full_text());
    }

    #[test]
    fn change_shows_only_the_changed_range() {
        let shown = |old: &str, new: &str| render_change(old, new).replace('\n', "|");
        assert_eq!(shown("a\nb\nc\n", "a\nx\ny\nc\n"), "from line 2:|- b|+ x|+ y|");
        assert_eq!(shown("a\na\n", "a\na\na\n"), "from line 3:|+ a|");
        assert_eq!(shown("", "\ta\u{202e}b\n"), "from line 1:|+ \ta\\u{202e}b|");
    }

    #[test]
    fn fenced_text_ends_with_a_line_break() {
        assert_eq!(fence_text("a ``` b\n````\n"), "`````\na ``` b\n````\n`````\n");
        assert_eq!(fence_text("a"), "```\na\n```\n");
    }
}
