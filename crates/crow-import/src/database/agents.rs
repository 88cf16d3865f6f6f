//! The agents that make up each session, and the parent of each session.

use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, Row};

use super::tables::{TableColumns, column_int, column_text};

/// The agents of the session itself; forks count from there.
const TRUNK: i64 = 1;

/// A session as in the old tables: its agents, each but the first started by a compaction.
#[derive(Debug)]
pub(super) struct AgentChain {
    /// The ID by which it was addressed.
    pub(super) id: String,
    /// The ID of the parent session.
    pub(super) parent: Option<String>,
    /// The number of the fork, if it is one.
    pub(super) fork: Option<i64>,
    pub(super) agents: Vec<OldAgent>,
}

#[derive(Debug)]
pub(super) struct OldAgent {
    pub(super) id: String,
    session: String,
    generation: i64,
    fork: i64,
    /// The last message of another agent that it sees, if a fork begins here.
    forked_at: Option<i64>,
    is_delegate: bool,
    /// The agent whose messages it sees, up to that message.
    pub(super) inherited: Option<(String, i64)>,
}

/// Reads the sessions, parents first.
pub(super) fn read_chains(connection: &Connection) -> rusqlite::Result<Vec<AgentChain>> {
    let mut chains: Vec<AgentChain> = Vec::new();
    let mut used_ids = HashSet::new();
    for agent in read_agents(connection)? {
        match chains.last_mut() {
            Some(chain) if chain.continues_with(&agent) => chain.agents.push(agent),
            _ => {
                let mut chain = AgentChain::from_first_agent(agent);
                // Sessions need unique IDs here, which forks and sessions did not have there.
                while !used_ids.insert(chain.id.clone()) {
                    chain.id.push_str("-again");
                }
                chains.push(chain);
            }
        }
    }
    let owner_of_task = read_task_owners(connection)?;
    let mut chain_by_id = HashMap::new();
    for chain in &chains {
        chain_by_id.extend(chain.agents.iter().map(|agent| (agent.id.clone(), chain.id.clone())));
    }
    chain_by_id.extend(chains.iter().map(|chain| (chain.id.clone(), chain.id.clone())));
    for chain in &mut chains {
        let ids = std::iter::once(&chain.id).chain(chain.agents.iter().map(|agent| &agent.id));
        let owner = ids.filter_map(|id| owner_of_task.get(id)).next();
        let parent = owner.cloned().or_else(|| chain.delegating_session());
        chain.parent = parent.and_then(|parent| chain_by_id.get(&parent).cloned());
    }
    Ok(sort_parents_first(chains))
}

impl AgentChain {
    fn from_first_agent(agent: OldAgent) -> Self {
        let is_trunk = agent.fork == TRUNK && !agent.session.is_empty();
        let id = if is_trunk { agent.session.clone() } else { agent.id.clone() };
        let fork = (agent.fork != TRUNK).then_some(agent.fork);
        Self { id, parent: None, fork, agents: vec![agent] }
    }

    fn continues_with(&self, next: &OldAgent) -> bool {
        self.agents.last().is_some_and(|last| {
            let is_later = next.fork == TRUNK || next.generation == last.generation.saturating_add(1);
            !next.session.is_empty()
                && next.session == last.session
                && next.fork == last.fork
                && next.forked_at.is_none()
                && is_later
        })
    }

    /// The session that delegated to this fork. A fork that a user made has no parent, so that it outlives its
    /// origin.
    fn delegating_session(&self) -> Option<String> {
        let first = self.agents.first().filter(|first| self.fork.is_some() && first.is_delegate)?;
        Some(first.session.clone())
    }
}

fn read_agents(connection: &Connection) -> rusqlite::Result<Vec<OldAgent>> {
    let columns = TableColumns::for_table(connection, "agents")?;
    let arguments = columns.column_or("prompt_args", "NULL");
    let sql = format!(
        "SELECT agent_id, session_id, {}, {} AS fork, {},
                CASE WHEN typeof({arguments}) = 'text' AND json_valid({arguments})
                     THEN json_extract({arguments}, '$.rlm_depth') END
         FROM agents ORDER BY session_id, fork, 3, rowid",
        columns.column_or("agent_idx", "1"),
        columns.column_or("fork_idx", "1"),
        columns.column_or("forked_at", "NULL"),
    );
    let mut statement = connection.prepare(&sql)?;
    let mut agents: Vec<OldAgent> =
        statement.query_map([], |row| Ok(read_agent(row)))?.collect::<rusqlite::Result<_>>()?;
    let trunk = |agent: &&OldAgent| agent.fork == TRUNK;
    let trunks: HashMap<(String, i64), String> = agents
        .iter()
        .filter(trunk)
        .map(|agent| ((agent.session.clone(), agent.generation), agent.id.clone()))
        .collect();
    for agent in agents.iter_mut().filter(|agent| agent.fork != TRUNK) {
        let source = trunks.get(&(agent.session.clone(), agent.generation));
        agent.inherited = source.cloned().zip(agent.forked_at);
    }
    Ok(agents)
}

fn read_agent(row: &Row<'_>) -> OldAgent {
    let forked_at = column_text(row, 4);
    OldAgent {
        id: column_text(row, 0),
        session: column_text(row, 1),
        generation: column_int(row, 2).unwrap_or(TRUNK),
        fork: column_int(row, 3).unwrap_or(TRUNK),
        // A fork without a message saw all of them.
        forked_at: (!forked_at.is_empty()).then(|| column_int(row, 4).unwrap_or(i64::MAX)),
        is_delegate: column_int(row, 5).is_some_and(|depth| depth > 0),
        inherited: None,
    }
}

/// Reads the parent of each session that a task started; of several tasks the latest counts.
fn read_task_owners(connection: &Connection) -> rusqlite::Result<HashMap<String, String>> {
    let columns = TableColumns::for_table(connection, "tasks")?;
    if !columns.contains_all(&["sub_session", "owner_session"]) {
        return Ok(HashMap::new());
    }
    let sql = format!(
        "SELECT sub_session, owner_session FROM tasks WHERE sub_session IS NOT NULL ORDER BY {}, rowid",
        columns.column_or("created_at", "NULL")
    );
    let mut statement = connection.prepare(&sql)?;
    statement.query_map([], |row| Ok((column_text(row, 0), column_text(row, 1))))?.collect()
}

/// Sorts every session after its parent. In a cycle, one of them is the first.
fn sort_parents_first(chains: Vec<AgentChain>) -> Vec<AgentChain> {
    let index_by_id: HashMap<String, usize> =
        chains.iter().enumerate().map(|(index, chain)| (chain.id.clone(), index)).collect();
    let (mut order, mut is_visited) = (Vec::new(), vec![false; chains.len()]);
    for index in 0..chains.len() {
        let mut path: Vec<usize> = Vec::new();
        let mut next = Some(index);
        while let Some(index) = next.filter(|place| !is_visited[*place]) {
            is_visited[index] = true;
            path.push(index);
            next = chains[index].parent.as_ref().and_then(|parent| index_by_id.get(parent)).copied();
        }
        order.extend(path.into_iter().rev());
    }
    let mut chains: Vec<Option<AgentChain>> = chains.into_iter().map(Some).collect();
    order.into_iter().filter_map(|index| chains[index].take()).collect()
}
