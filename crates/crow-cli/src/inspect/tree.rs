//! Sessions with the sessions they started.

use std::{
    collections::{HashMap, HashSet},
    io::Write,
};

use crow_core::SessionId;
use crow_store::{SessionRow, Store, TaskRow, Timestamp};
use serde_json::{Value, json};

use super::{
    format::{format_age, session_json, short_title},
    tasks,
};
use crate::{cli::InspectArgs, failure::CliError, table};

/// No depth limit allows deeper trees, so a deeper one means a broken database.
const DEPTH_MAX: usize = 64;

/// Shows the trees of these sessions, each once.
pub(super) async fn show_trees(
    args: &InspectArgs,
    store: &Store,
    rows: &[SessionRow],
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let (mut trees, mut roots) = (Vec::new(), HashSet::new());
    for row in rows {
        let root = find_root(store, row).await?;
        if roots.insert(root.clone()) {
            trees.push(SessionTree::load(store, &root).await?);
        }
    }
    write_trees(args, &trees, now, out)
}

/// Shows one session with its descendants.
pub(super) async fn show_tree(
    args: &InspectArgs,
    store: &Store,
    id: &SessionId,
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), CliError> {
    write_trees(args, &[SessionTree::load(store, id).await?], now, out)
}

/// A session with its descendants.
struct SessionTree {
    rows: Vec<SessionRow>,
    tasks: HashMap<SessionId, TaskRow>,
}

impl SessionTree {
    async fn load(store: &Store, root: &SessionId) -> Result<Self, CliError> {
        let rows = store.session_tree(root).await?;
        let mut tasks = Vec::from_iter(store.find_task(root).await?);
        let parents: HashSet<&SessionId> = rows.iter().filter_map(|row| row.parent.as_ref()).collect();
        for row in rows.iter().filter(|row| parents.contains(&row.id)) {
            tasks.extend(store.list_tasks(&row.id).await?);
        }
        let mut task_rows = HashMap::new();
        for task in tasks {
            task_rows.insert(task.task.clone(), tasks::refresh_task_state(store, task).await);
        }
        Ok(Self { rows, tasks: task_rows })
    }

    fn children(&self, row: &SessionRow) -> impl Iterator<Item = &SessionRow> {
        self.rows.iter().filter(|other| other.parent.as_ref() == Some(&row.id))
    }

    /// Describes a session's task and its agent.
    fn task_label(&self, row: &SessionRow) -> String {
        match (self.tasks.get(&row.id), &row.agent_type) {
            (Some(task), _) => format!("{}: {}", tasks::agent_name(row), tasks::describe_task(task)),
            (None, agent) => agent.clone().unwrap_or_default(),
        }
    }
}

/// Finds the root session, which a user started.
async fn find_root(store: &Store, row: &SessionRow) -> Result<SessionId, CliError> {
    let (mut id, mut parent) = (row.id.clone(), row.parent.clone());
    for _ in 0..DEPTH_MAX {
        let Some(parent_id) = parent else { break };
        parent = store.session_tree(&parent_id).await?.into_iter().next().and_then(|row| row.parent);
        id = parent_id;
    }
    Ok(id)
}

fn write_trees(
    args: &InspectArgs,
    trees: &[SessionTree],
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let roots = trees.iter().filter_map(|tree| Some((tree.rows.first()?, tree)));
    if args.json {
        let sessions: Vec<Value> = roots.map(|(root, tree)| branch_json(root, tree, 0)).collect();
        return Ok(writeln!(out, "{}", table::json_line(&json!({ "sessions": sessions })))?);
    }
    let mut lines = Vec::new();
    for (root, tree) in roots {
        collect_branch(root, tree, 0, &mut lines);
    }
    if lines.is_empty() {
        return Ok(writeln!(out, "no sessions yet")?);
    }
    let header = ["SESSION", "UPDATED", "MESSAGES", "MODEL", "TITLE", "TASK", "COPY OF"].map(str::to_owned);
    let lines = lines.into_iter().map(|(depth, row, tree)| {
        let indent = depth.checked_sub(1).map(|depth| format!("{}└ ", "  ".repeat(depth)));
        let id = format!("{}{}", indent.unwrap_or_default(), row.id);
        let fork_origin = row.forked_from.as_ref().map_or_else(String::new, ToString::to_string);
        let (age, n_messages) = (format_age(row.updated, now), row.n_messages.to_string());
        [id, age, n_messages, row.model.clone(), short_title(row), tree.task_label(row), fork_origin]
    });
    Ok(table::write_table(out, std::iter::once(header).chain(lines))?)
}

fn collect_branch<'a>(
    row: &'a SessionRow,
    tree: &'a SessionTree,
    depth: usize,
    lines: &mut Vec<(usize, &'a SessionRow, &'a SessionTree)>,
) {
    lines.push((depth, row, tree));
    if depth < DEPTH_MAX {
        tree.children(row).for_each(|child| collect_branch(child, tree, depth + 1, lines));
    }
}

fn branch_json(row: &SessionRow, tree: &SessionTree, depth: usize) -> Value {
    let mut json = session_json(row);
    json["task"] = tasks::task_json(tree.tasks.get(&row.id));
    let n_below = if depth < DEPTH_MAX { usize::MAX } else { 0 };
    json["children"] =
        tree.children(row).take(n_below).map(|child| branch_json(child, tree, depth + 1)).collect();
    json
}
