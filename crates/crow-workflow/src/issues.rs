//! The target of issues: which repository gets them, and which calls may create them. The model creates them with the
//! user's own MCP server; this module checks that each one belongs to an open task and to the repository of the
//! remote.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crow_core::{ToolAccess, ToolCall, ToolSpec};
use crow_speckit::{
    Feature, GithubRepository, IssueFacts, SpeckitError, SpeckitProject, TaskFacts, TaskId, TaskItem,
    WorkflowCommand, github_repository, task_facts,
};

/// Names of the tool that creates an issue, newest first.
const WRITE_TOOLS: [&str; 2] = ["issue_write", "create_issue"];

/// Names of the tool that lists issues.
const LIST_TOOLS: [&str; 2] = ["list_issues", "search_issues"];

/// A tool of an MCP server.
#[derive(Debug, Clone)]
pub struct ServerTool {
    /// The server.
    pub server: String,
    /// The server's name for the tool.
    pub name: String,
    /// The definition, as the model knows it.
    pub spec: ToolSpec,
}

/// The open tasks that may get an issue, and the repository of the remote.
pub(crate) struct IssueTasks {
    repository: GithubRepository,
    /// In the order of the list.
    tasks: Vec<TaskFacts>,
}

impl IssueTasks {
    /// Reads the tasks that the arguments of the command select. Blocks.
    pub(crate) fn read_tasks(
        project: &SpeckitProject,
        feature: &Feature,
        arguments: &str,
    ) -> Result<Self, SpeckitError> {
        let repository = github_repository(project)?;
        let list = feature.read_task_list()?;
        let selected = list.select_tasks(arguments);
        let is_selected = |task: &&TaskItem| {
            !task.done && selected.as_ref().is_none_or(|selected| selected.contains(&task.id))
        };
        let tasks = list.tasks.iter().filter(is_selected).map(|task| task_facts(&list, task)).collect();
        Ok(Self { repository, tasks })
    }
}

/// The repository in which issues are created, and the tools for it.
pub(crate) struct IssueTarget {
    command: WorkflowCommand,
    repository: GithubRepository,
    server: String,
    /// The tools, as the model knows them.
    write_tool: String,
    list_tool: String,
    /// The tasks that may get an issue, in order.
    pub(crate) tasks: Vec<TaskFacts>,
    created: Mutex<BTreeSet<TaskId>>,
}

impl IssueTarget {
    /// Chooses the server; `None` if no server creates issues.
    pub(crate) fn choose_server(
        command: WorkflowCommand,
        IssueTasks { repository, tasks }: IssueTasks,
        server_tools: &[ServerTool],
    ) -> Option<Self> {
        let write_tool = find_write_tool(server_tools)?;
        let list_tool = LIST_TOOLS.iter().find_map(|name| {
            let matches = |tool: &&ServerTool| tool.server == write_tool.server && tool.name == *name;
            server_tools.iter().find(matches).map(|tool| tool.spec.name.clone())
        });
        Some(Self {
            command,
            repository,
            server: write_tool.server.clone(),
            write_tool: write_tool.spec.name.clone(),
            list_tool: list_tool.unwrap_or_default(),
            tasks,
            created: Mutex::default(),
        })
    }

    /// Returns the facts for the prompt.
    pub(crate) fn facts(&self) -> IssueFacts {
        IssueFacts {
            owner: self.repository.owner.clone(),
            repo: self.repository.name.clone(),
            write_tool: self.write_tool.clone(),
            list_tool: self.list_tool.clone(),
        }
    }

    /// Returns the reason to deny a call: it is for another repository, or creates an issue that belongs to no task.
    pub(crate) fn denial(&self, call: &ToolCall, access: &ToolAccess) -> Option<String> {
        let ToolAccess::Calls { server, tool } = access else { return None };
        let (command, repository) = (self.command, &self.repository);
        let is_write = WRITE_TOOLS.contains(&tool.as_str());
        if *server != self.server {
            let reason = format!(
                "{command} only creates issues with {} of the server {}",
                self.write_tool, self.server
            );
            return is_write.then_some(reason);
        }
        let arguments = call.arguments.to_object();
        let text_argument = |key: &str| arguments.get(key).and_then(serde_json::Value::as_str);
        let matches = |key: &str, expected: &str| {
            text_argument(key).is_some_and(|text_argument| text_argument.eq_ignore_ascii_case(expected))
        };
        let differs = |key: &str, expected: &str| arguments.contains_key(key) && !matches(key, expected);
        if differs("owner", &repository.owner) || differs("repo", &repository.name) {
            return Some(format!("{command} only works with {repository}, the repository of the remote"));
        }
        if !is_write {
            return None;
        }
        if !matches("owner", &repository.owner) || !matches("repo", &repository.name) {
            return Some(format!(
                "specify the repository: owner {}, repo {}",
                repository.owner, repository.name
            ));
        }
        if text_argument("method").is_some_and(|method| method != "create") {
            return Some(format!("{command} only creates issues"));
        }
        let id = text_argument("title").and_then(parse_task_id);
        let Some(id) = id.filter(|id| self.tasks.iter().any(|task| task.id == id.as_str())) else {
            return Some(
                "the title of an issue must be the id and the text of an open task: `T001: …`".to_owned(),
            );
        };
        let created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        created.contains(&id).then(|| format!("{id} already has an issue"))
    }

    /// Stores that an issue was created.
    pub(crate) fn record_created(&self, call: &ToolCall, access: &ToolAccess) {
        let arguments = call.arguments.to_object();
        let title = arguments.get("title").and_then(serde_json::Value::as_str);
        let is_write =
            matches!(access, ToolAccess::Calls { tool, .. } if WRITE_TOOLS.contains(&tool.as_str()));
        if let Some(id) = title.and_then(parse_task_id).filter(|_| is_write) {
            self.created.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        }
    }

    /// The line in the report.
    pub(crate) fn summary_line(&self) -> String {
        let created = self.created.lock().unwrap_or_else(PoisonError::into_inner);
        let ids: Vec<&str> = created.iter().map(TaskId::as_str).collect();
        let ids = if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
        format!("New issues in {}: {ids}; open tasks: {}", self.repository, self.tasks.len())
    }
}

/// Returns the task id at the beginning of a title.
fn parse_task_id(title: &str) -> Option<TaskId> {
    let word = title.trim_start().trim_start_matches('[');
    TaskId::parse(word.split(|char: char| !char.is_alphanumeric()).next()?)
}

/// Finds the GitHub server: its tool to create issues has a parameter for the repository. Of several, one with GitHub
/// in its name is chosen.
fn find_write_tool(server_tools: &[ServerTool]) -> Option<&ServerTool> {
    let is_github = |tool: &ServerTool| tool.server.to_ascii_lowercase().contains("github");
    let is_write = |tool: &&ServerTool| {
        let has_issue_tool = tool.name == WRITE_TOOLS[0] || (tool.name == WRITE_TOOLS[1] && is_github(tool));
        let has_parameter = |name: &str| tool.spec.parameters["properties"].get(name).is_some();
        has_issue_tool && ["owner", "repo", "title"].into_iter().all(has_parameter)
    };
    let candidates: Vec<&ServerTool> = server_tools.iter().filter(is_write).collect();
    candidates.iter().find(|tool| is_github(tool)).or_else(|| candidates.first()).copied()
}

/// Explains how to configure a server.
pub(crate) fn missing_server_message(command: WorkflowCommand, config_file: &str) -> String {
    format!(
        "{command} creates issues with your GitHub MCP server, and no connected server has a tool `issue_write`. Add \
         one to {config_file}, with a token that may write issues, and start a new session:\n\n```yaml\nmcpServers:\n  \
         github:\n    url: https://api.githubcopilot.com/mcp/\n    headers: {{ Authorization: \"Bearer \
         ${{GITHUB_TOKEN}}\" }}\n```\n\nNothing was sent."
    )
}
