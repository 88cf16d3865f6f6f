//! Sessions with those they started below them.

use std::{collections::HashSet, io::Write};

use crow_core::SessionId;
use crow_store::{SessionRow, Store, Timestamp};
use serde_json::{Value, json};

use super::{age, session_json, title};
use crate::{cli::InspectArgs, failure::Exit, table};

/// Deeper families are cut: no limit on depth allows them, so a wrong database has them.
const DEPTH_MAX: usize = 64;

/// Shows the families of these sessions, each once.
pub(super) async fn all(
    args: &InspectArgs,
    store: &Store,
    rows: &[SessionRow],
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), Exit> {
    let (mut families, mut seen) = (Vec::new(), HashSet::new());
    for row in rows {
        let root = root(store, row).await?;
        if seen.insert(root.clone()) {
            families.push(store.family(&root).await?);
        }
    }
    write(args, &families, now, out)
}

/// Shows one session with those below it.
pub(super) async fn family(
    args: &InspectArgs,
    store: &Store,
    id: &SessionId,
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), Exit> {
    write(args, &[store.family(id).await?], now, out)
}

/// Climbs to the session that a person started.
async fn root(store: &Store, row: &SessionRow) -> Result<SessionId, Exit> {
    let (mut id, mut parent) = (row.id.clone(), row.parent.clone());
    for _ in 0..DEPTH_MAX {
        let Some(above) = parent else { break };
        parent = store.family(&above).await?.into_iter().next().and_then(|row| row.parent);
        id = above;
    }
    Ok(id)
}

fn write(
    args: &InspectArgs,
    families: &[Vec<SessionRow>],
    now: Timestamp,
    out: &mut impl Write,
) -> Result<(), Exit> {
    let roots = families.iter().filter_map(|family| Some((family.first()?, family.as_slice())));
    if args.json {
        let sessions: Vec<Value> = roots.map(|(root, family)| branch_json(root, family, 0)).collect();
        return Ok(writeln!(out, "{}", table::json(&json!({ "sessions": sessions })))?);
    }
    let mut lines = Vec::new();
    for (root, family) in roots {
        branch(root, family, 0, &mut lines);
    }
    if lines.is_empty() {
        return Ok(writeln!(out, "no sessions yet")?);
    }
    let header = ["SESSION", "UPDATED", "MESSAGES", "MODEL", "TITLE", "COPY OF"].map(str::to_owned);
    let lines = lines.into_iter().map(|(depth, row)| {
        let below = depth.checked_sub(1).map(|depth| format!("{}└ ", "  ".repeat(depth)));
        let id = format!("{}{}", below.unwrap_or_default(), row.id);
        let origin = row.forked_from.as_ref().map_or_else(String::new, ToString::to_string);
        [id, age(row.updated, now), row.n_messages.to_string(), row.model.clone(), title(row), origin]
    });
    Ok(table::write(out, std::iter::once(header).chain(lines))?)
}

fn children<'a>(row: &'a SessionRow, family: &'a [SessionRow]) -> impl Iterator<Item = &'a SessionRow> {
    family.iter().filter(|other| other.parent.as_ref() == Some(&row.id))
}

fn branch<'a>(
    row: &'a SessionRow,
    family: &'a [SessionRow],
    depth: usize,
    lines: &mut Vec<(usize, &'a SessionRow)>,
) {
    lines.push((depth, row));
    if depth < DEPTH_MAX {
        children(row, family).for_each(|child| branch(child, family, depth + 1, lines));
    }
}

fn branch_json(row: &SessionRow, family: &[SessionRow], depth: usize) -> Value {
    let mut json = session_json(row);
    let below = if depth < DEPTH_MAX { family } else { &[] };
    json["children"] = children(row, below).map(|child| branch_json(child, family, depth + 1)).collect();
    json
}
