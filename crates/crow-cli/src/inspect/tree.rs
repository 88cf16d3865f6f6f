//! Sessions with those they started below them.

use std::{
    collections::{HashMap, HashSet},
    io::Write,
};

use crow_core::SessionId;
use crow_store::{SessionRow, Store, TaskRow, Timestamp};
use serde_json::{Value, json};

use super::{format_age, session_json, short_title, tasks};
use crate::{cli::InspectArgs, failure::CliError, table};

/// Deeper families are cut: no limit on depth allows them, so a wrong database has them.
const DEPTH_MAX: usize = 64;

/// Shows the families of these sessions, each once.
pub(super) async fn show_trees(
    args: &InspectArgs,
    store: &Store,
    rows: &[SessionRow],
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let (mut families, mut seen) = (Vec::new(), HashSet::new());
    for row in rows {
        let root = find_root(store, row).await?;
        if seen.insert(root.clone()) {
            families.push(SessionTree::load(store, &root).await?);
        }
    }
    write_trees(args, &families, now, out)
}

/// Shows one session with those below it.
pub(super) async fn show_tree(
    args: &InspectArgs,
    store: &Store,
    id: &SessionId,
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), CliError> {
    write_trees(args, &[SessionTree::load(store, id).await?], now, out)
}

/// A session with all below it.
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
        let mut standing = HashMap::new();
        for task in tasks {
            standing.insert(task.task.clone(), tasks::refresh_task_state(store, task).await);
        }
        Ok(Self { rows, tasks: standing })
    }

    fn children(&self, row: &SessionRow) -> impl Iterator<Item = &SessionRow> {
        self.rows.iter().filter(|other| other.parent.as_ref() == Some(&row.id))
    }

    /// Says who does what a session was started for, and what became of it.
    fn task_label(&self, row: &SessionRow) -> String {
        match (self.tasks.get(&row.id), &row.agent_type) {
            (Some(task), _) => format!("{}: {}", tasks::agent_name(row), tasks::describe_task(task)),
            (None, agent) => agent.clone().unwrap_or_default(),
        }
    }
}

/// Climbs to the session that a person started.
async fn find_root(store: &Store, row: &SessionRow) -> Result<SessionId, CliError> {
    let (mut id, mut parent) = (row.id.clone(), row.parent.clone());
    for _ in 0..DEPTH_MAX {
        let Some(above) = parent else { break };
        parent = store.session_tree(&above).await?.into_iter().next().and_then(|row| row.parent);
        id = above;
    }
    Ok(id)
}

fn write_trees(
    args: &InspectArgs,
    families: &[SessionTree],
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let roots = families.iter().filter_map(|family| Some((family.rows.first()?, family)));
    if args.json {
        let sessions: Vec<Value> = roots.map(|(root, family)| branch_json(root, family, 0)).collect();
        return Ok(writeln!(out, "{}", table::json_line(&json!({ "sessions": sessions })))?);
    }
    let mut lines = Vec::new();
    for (root, family) in roots {
        collect_branch(root, family, 0, &mut lines);
    }
    if lines.is_empty() {
        return Ok(writeln!(out, "no sessions yet")?);
    }
    let header = ["SESSION", "UPDATED", "MESSAGES", "MODEL", "TITLE", "TASK", "COPY OF"].map(str::to_owned);
    let lines = lines.into_iter().map(|(depth, row, family)| {
        let below = depth.checked_sub(1).map(|depth| format!("{}└ ", "  ".repeat(depth)));
        let id = format!("{}{}", below.unwrap_or_default(), row.id);
        let origin = row.forked_from.as_ref().map_or_else(String::new, ToString::to_string);
        let (age, n_messages) = (format_age(row.updated, now), row.n_messages.to_string());
        [id, age, n_messages, row.model.clone(), short_title(row), family.task_label(row), origin]
    });
    Ok(table::write_table(out, std::iter::once(header).chain(lines))?)
}

fn collect_branch<'a>(
    row: &'a SessionRow,
    family: &'a SessionTree,
    depth: usize,
    lines: &mut Vec<(usize, &'a SessionRow, &'a SessionTree)>,
) {
    lines.push((depth, row, family));
    if depth < DEPTH_MAX {
        family.children(row).for_each(|child| collect_branch(child, family, depth + 1, lines));
    }
}

fn branch_json(row: &SessionRow, family: &SessionTree, depth: usize) -> Value {
    let mut json = session_json(row);
    json["task"] = tasks::task_json(family.tasks.get(&row.id));
    let n_below = if depth < DEPTH_MAX { usize::MAX } else { 0 };
    json["children"] =
        family.children(row).take(n_below).map(|child| branch_json(child, family, depth + 1)).collect();
    json
}
