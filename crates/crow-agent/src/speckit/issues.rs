//! `/speckit.taskstoissues`: where the issues of a task list go, and which calls may make them. The model makes them through
//! the person's own MCP server; that they land in the repository of the remote, one for each task, is seen to here.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crow_core::{ToolAccess, ToolCall, ToolSpec};
use crow_speckit::{
    Feature, GithubRepository, IssueFacts, TaskFacts, TaskId, TaskItem, WorkflowCommand, github_repository,
};

use crate::run_turn::TurnCx;
use crate::speckit::ground::ProjectContext;
use crate::speckit::implement::task_facts;
use crate::speckit::record::run_blocking;

/// What servers call the tool that makes an issue, the newest name first.
const WRITE_TOOLS: [&str; 2] = ["issue_write", "create_issue"];

/// What they call the tool that lists issues.
const LIST_TOOLS: [&str; 2] = ["list_issues", "search_issues"];

/// Where issues go.
pub(super) struct IssueHome {
    repository: GithubRepository,
    server: String,
    /// The tools, as the model is told of them.
    write_tool: String,
    list_tool: String,
    /// The tasks that may get one, in their order.
    pub(super) tasks: Vec<TaskFacts>,
    made: Mutex<BTreeSet<TaskId>>,
}

impl IssueHome {
    /// Finds the repository, the server and the tasks; the other side is why no issue can be made.
    pub(super) async fn find(
        cx: &TurnCx<'_>,
        ground: &ProjectContext,
        (feature, scope): (&Feature, &str),
    ) -> Result<Self, String> {
        let (project, feature, scope) = (ground.project.clone(), feature.clone(), scope.to_owned());
        let (repository, tasks) = run_blocking(move || {
            let repository = github_repository(&project)?;
            let list = feature.read_task_list()?;
            let among = list.select_tasks(&scope);
            let is_meant =
                |task: &&TaskItem| !task.done && among.as_ref().is_none_or(|among| among.contains(&task.id));
            let tasks: Vec<TaskFacts> =
                list.tasks.iter().filter(is_meant).map(|task| task_facts(&list, task)).collect();
            Ok((repository, tasks))
        })
        .await?;
        cx.toolbox.wait_until_connected(cx.cut).await;
        let served = cx.toolbox.served();
        let Some((server, write_tool)) = writer(&served) else {
            return Err(unserved(&cx.kit.config().config_dir.join("config.yaml").display().to_string()));
        };
        let lister = LIST_TOOLS.iter().find_map(|name| {
            served
                .iter()
                .find(|(of, own, _)| of == server && own == name)
                .map(|(_, _, spec)| spec.name.clone())
        });
        let (server, list_tool) = (server.to_owned(), lister.unwrap_or_default());
        Ok(Self {
            repository,
            server,
            write_tool: write_tool.name.clone(),
            list_tool,
            tasks,
            made: Mutex::default(),
        })
    }

    /// What the prompt speaks of.
    pub(super) fn facts(&self) -> IssueFacts {
        IssueFacts {
            owner: self.repository.owner.clone(),
            repo: self.repository.name.clone(),
            write_tool: self.write_tool.clone(),
            list_tool: self.list_tool.clone(),
        }
    }

    /// Says why a call is not for this step: it is about another repository, or makes another issue than one for a task.
    pub(super) fn refused(&self, call: &ToolCall, touch: &ToolAccess) -> Option<String> {
        let ToolAccess::Calls { server, tool } = touch else { return None };
        let (command, repository) = (WorkflowCommand::TasksToIssues, &self.repository);
        let writes = WRITE_TOOLS.contains(&tool.as_str());
        if *server != self.server {
            let why =
                format!("{command} makes issues with {} of the server {} only", self.write_tool, self.server);
            return writes.then_some(why);
        }
        let arguments = call.arguments.to_object();
        let word = |key: &str| arguments.get(key).and_then(serde_json::Value::as_str);
        let is_ours = |key: &str, ours: &str| word(key).is_some_and(|word| word.eq_ignore_ascii_case(ours));
        let is_elsewhere = |key: &str, ours: &str| arguments.contains_key(key) && !is_ours(key, ours);
        if is_elsewhere("owner", &repository.owner) || is_elsewhere("repo", &repository.name) {
            return Some(format!("{command} works with {repository} only, which the remote names"));
        }
        if !writes {
            return None;
        }
        if !is_ours("owner", &repository.owner) || !is_ours("repo", &repository.name) {
            return Some(format!(
                "name the repository: owner {}, repo {}",
                repository.owner, repository.name
            ));
        }
        if word("method").is_some_and(|method| method != "create") {
            return Some(format!("{command} makes issues and changes none that are there"));
        }
        let id = word("title").and_then(task_of);
        let Some(id) = id.filter(|id| self.tasks.iter().any(|task| task.id == id.as_str())) else {
            return Some(
                "the title of an issue is the id of an open task and what it says: `T001: …`".to_owned(),
            );
        };
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.contains(&id).then(|| format!("{id} has its issue already"))
    }

    /// Remembers an issue that was made.
    pub(super) fn done(&self, call: &ToolCall, touch: &ToolAccess) {
        let arguments = call.arguments.to_object();
        let title = arguments.get("title").and_then(serde_json::Value::as_str);
        let is_write =
            matches!(touch, ToolAccess::Calls { tool, .. } if WRITE_TOOLS.contains(&tool.as_str()));
        if let Some(id) = title.and_then(task_of).filter(|_| is_write) {
            self.made.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        }
    }

    /// What the person is told.
    pub(super) fn line(&self) -> String {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let names: Vec<&str> = made.iter().map(TaskId::as_str).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        format!("New issues in {}: {names}; open tasks: {}", self.repository, self.tasks.len())
    }
}

/// The id that a title begins with.
fn task_of(title: &str) -> Option<TaskId> {
    let word = title.trim_start().trim_start_matches('[');
    TaskId::parse(word.split(|char: char| !char.is_alphanumeric()).next()?)
}

/// A tool of a server: whose, what it is called there, what the model is told.
pub(crate) type Served = (String, String, ToolSpec);

/// The server that is GitHub's: its tool that makes issues takes a repository. Of several, one that is named for it.
fn writer(served: &[Served]) -> Option<(&str, &ToolSpec)> {
    let takes = |spec: &ToolSpec, name: &str| spec.parameters["properties"].get(name).is_some();
    let is_github = |server: &str| server.to_ascii_lowercase().contains("github");
    let writes = |(server, own, spec): &&Served| {
        let is_named = own == WRITE_TOOLS[0] || (own == WRITE_TOOLS[1] && is_github(server));
        is_named && ["owner", "repo", "title"].iter().all(|name| takes(spec, name))
    };
    let all: Vec<&Served> = served.iter().filter(writes).collect();
    let named = all.iter().find(|(server, _, _)| is_github(server)).or_else(|| all.first())?;
    Some((&named.0, &named.2))
}

/// Says how to have a server.
fn unserved(file: &str) -> String {
    format!(
        "{} makes issues through your GitHub MCP server, and no connected server has a tool `issue_write`. Add one to \
         {file}, with a token that may write issues, and begin a new session:\n\n```yaml\nmcpServers:\n  github:\n    url: \
         https://api.githubcopilot.com/mcp/\n    headers: {{ Authorization: \"Bearer ${{GITHUB_TOKEN}}\" }}\n```\n\nNothing \
         was sent.",
        WorkflowCommand::TasksToIssues
    )
}
