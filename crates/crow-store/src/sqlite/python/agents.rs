//! Which agents make up which session, and which session began which.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Row};

use super::tables::{Columns, text, whole};

/// The agents of the session itself; forks count from there.
const TRUNK: i64 = 1;

/// A session as the old tables have it: its agents, each but the first begun by a compaction.
#[derive(Debug)]
pub(super) struct Chain {
    /// The id by which it was addressed.
    pub(super) id: String,
    /// The id of the session that began it.
    pub(super) parent: Option<String>,
    /// Which fork it is, when it is one.
    pub(super) fork: Option<i64>,
    pub(super) agents: Vec<Agent>,
}

#[derive(Debug)]
pub(super) struct Agent {
    pub(super) id: String,
    session: String,
    generation: i64,
    fork: i64,
    /// The last message of another agent that it sees, when it is where a fork begins.
    forked_at: Option<i64>,
    is_delegate: bool,
    /// The agent whose messages it sees, up to that message.
    pub(super) sees: Option<(String, i64)>,
}

/// Reads which sessions there are, parents first.
pub(super) fn chains(connection: &Connection) -> rusqlite::Result<Vec<Chain>> {
    let mut chains: Vec<Chain> = Vec::new();
    let mut taken = HashSet::new();
    for agent in agents(connection)? {
        match chains.last_mut() {
            Some(chain) if chain.goes_on_with(&agent) => chain.agents.push(agent),
            _ => {
                let mut chain = Chain::begun_by(agent);
                // Two sessions of ours cannot share a name, which forks and sessions there could.
                while !taken.insert(chain.id.clone()) {
                    chain.id.push_str("-again");
                }
                chains.push(chain);
            }
        }
    }
    let begun_by = tasks(connection)?;
    let mut chain_of = HashMap::new();
    for chain in &chains {
        chain_of.extend(chain.agents.iter().map(|agent| (agent.id.clone(), chain.id.clone())));
    }
    chain_of.extend(chains.iter().map(|chain| (chain.id.clone(), chain.id.clone())));
    for chain in &mut chains {
        let names = std::iter::once(&chain.id).chain(chain.agents.iter().map(|agent| &agent.id));
        let owner = names.filter_map(|name| begun_by.get(name)).next();
        let parent = owner.cloned().or_else(|| chain.delegated_by());
        chain.parent = parent.and_then(|parent| chain_of.get(&parent).cloned());
    }
    Ok(parents_first(chains))
}

impl Chain {
    fn begun_by(agent: Agent) -> Self {
        let is_trunk = agent.fork == TRUNK && !agent.session.is_empty();
        let id = if is_trunk { agent.session.clone() } else { agent.id.clone() };
        let fork = (agent.fork != TRUNK).then_some(agent.fork);
        Self { id, parent: None, fork, agents: vec![agent] }
    }

    fn goes_on_with(&self, next: &Agent) -> bool {
        self.agents.last().is_some_and(|last| {
            let is_later = next.fork == TRUNK || next.generation == last.generation.saturating_add(1);
            !next.session.is_empty()
                && next.session == last.session
                && next.fork == last.fork
                && next.forked_at.is_none()
                && is_later
        })
    }

    /// Names the session that delegated to this fork. A fork that a person made has no parent: it is to outlive it.
    fn delegated_by(&self) -> Option<String> {
        let first = self.agents.first().filter(|first| self.fork.is_some() && first.is_delegate)?;
        Some(first.session.clone())
    }
}

fn agents(connection: &Connection) -> rusqlite::Result<Vec<Agent>> {
    let columns = Columns::of(connection, "agents")?;
    let arguments = columns.or("prompt_args", "NULL");
    let sql = format!(
        "SELECT agent_id, session_id, {}, {} AS fork, {},
                CASE WHEN typeof({arguments}) = 'text' AND json_valid({arguments})
                     THEN json_extract({arguments}, '$.rlm_depth') END
         FROM agents ORDER BY session_id, fork, 3, rowid",
        columns.or("agent_idx", "1"),
        columns.or("fork_idx", "1"),
        columns.or("forked_at", "NULL"),
    );
    let mut statement = connection.prepare(&sql)?;
    let mut agents: Vec<Agent> =
        statement.query_map([], |row| Ok(agent(row)))?.collect::<rusqlite::Result<_>>()?;
    let trunk = |agent: &&Agent| agent.fork == TRUNK;
    let trunks: HashMap<(String, i64), String> = agents
        .iter()
        .filter(trunk)
        .map(|agent| ((agent.session.clone(), agent.generation), agent.id.clone()))
        .collect();
    for agent in agents.iter_mut().filter(|agent| agent.fork != TRUNK) {
        let seen = trunks.get(&(agent.session.clone(), agent.generation));
        agent.sees = seen.cloned().zip(agent.forked_at);
    }
    Ok(agents)
}

fn agent(row: &Row<'_>) -> Agent {
    let forked_at = text(row, 4);
    Agent {
        id: text(row, 0),
        session: text(row, 1),
        generation: whole(row, 2).unwrap_or(TRUNK),
        fork: whole(row, 3).unwrap_or(TRUNK),
        // One that names no message saw all of them.
        forked_at: (!forked_at.is_empty()).then(|| whole(row, 4).unwrap_or(i64::MAX)),
        is_delegate: whole(row, 5).is_some_and(|depth| depth > 0),
        sees: None,
    }
}

/// Reads which session began which by a task; of several tasks the latest counts.
fn tasks(connection: &Connection) -> rusqlite::Result<HashMap<String, String>> {
    let columns = Columns::of(connection, "tasks")?;
    if !columns.have(&["sub_session", "owner_session"]) {
        return Ok(HashMap::new());
    }
    let sql = format!(
        "SELECT sub_session, owner_session FROM tasks WHERE sub_session IS NOT NULL ORDER BY {}, rowid",
        columns.or("created_at", "NULL")
    );
    let mut statement = connection.prepare(&sql)?;
    statement.query_map([], |row| Ok((text(row, 0), text(row, 1))))?.collect()
}

/// Puts every session after the one that began it. Where they began each other, one of them is the first.
fn parents_first(chains: Vec<Chain>) -> Vec<Chain> {
    let place_of: HashMap<String, usize> =
        chains.iter().enumerate().map(|(place, chain)| (chain.id.clone(), place)).collect();
    let (mut order, mut is_placed) = (Vec::new(), vec![false; chains.len()]);
    for place in 0..chains.len() {
        let mut path: Vec<usize> = Vec::new();
        let mut next = Some(place);
        while let Some(place) = next.filter(|place| !is_placed[*place]) {
            is_placed[place] = true;
            path.push(place);
            next = chains[place].parent.as_ref().and_then(|parent| place_of.get(parent)).copied();
        }
        order.extend(path.into_iter().rev());
    }
    let mut chains: Vec<Option<Chain>> = chains.into_iter().map(Some).collect();
    order.into_iter().filter_map(|place| chains[place].take()).collect()
}
