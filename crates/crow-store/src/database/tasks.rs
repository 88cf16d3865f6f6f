//! Tasks, and the deliveries that wait for their parents.

use crow_core::SessionId;

use super::{
    handle::{Database, PAGE_MAX},
    messages::append_message,
};
use crate::{
    DeliveredEntry, Delivery, DeliveryId, StoreError, TaskEnd, TaskPlace, TaskRow, TaskState, Timestamp,
    row::EncodedMessage,
    session::foreign_agent_type,
    sql::{SqlError, SqlRow, SqlTransaction, values},
};

/// A session has as many tasks as it made calls for them; more are not read.
const TASKS_MAX: i64 = 10_000;
/// Agents report their own usage; no turn uses more, and sums of this do not overflow.
const TOKENS_MAX: u64 = u32::MAX as u64;

const DELETE_PLACE: &str = "DELETE FROM task_places WHERE session_id = $1";

/// Tasks with the columns that [`read_task_row`] reads.
macro_rules! tasks {
    () => {
        "SELECT s.id, s.parent_session_id, s.agent_type, s.title, t.state, t.n_rounds, t.n_tokens, t.started, \
             t.ended, t.branch, (SELECT count(*) FROM task_places p WHERE p.session_id = t.session_id) \
         FROM tasks t JOIN sessions s ON s.id = t.session_id \
         WHERE s.parent_session_id IS NOT NULL "
    };
}

impl Database {
    /// Begins the first or a further turn of a task.
    pub(crate) fn begin_task(
        &mut self,
        task: &SessionId,
        title: &str,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write_transaction(|sql| {
            let set = "UPDATE sessions SET title = $1 WHERE id = $2 AND parent_session_id IS NOT NULL";
            if sql.execute(set, values![title, task])? == 0 {
                return Err(StoreError::NoTask(task.clone()).into());
            }
            sql.execute(
                "INSERT INTO tasks (session_id, state, n_rounds, n_tokens, started)
                 VALUES ($1, 'running', 1, 0, $2)
                 ON CONFLICT (session_id) DO UPDATE
                     SET state = 'running', n_rounds = tasks.n_rounds + 1, started = $2, ended = NULL",
                values![task, now.0],
            )
            .map(drop)
        })
    }

    /// Ends the running turn; returns whether one was running.
    pub(crate) fn end_task(&mut self, task: &SessionId, end: &TaskEnd) -> Result<bool, StoreError> {
        self.write_transaction(|sql| {
            let n_ended = sql.execute(
                "UPDATE tasks SET state = $1, n_tokens = n_tokens + $2, branch = COALESCE($3, branch), ended = $4
                 WHERE session_id = $5 AND state = 'running'",
                values![
                    end.state.as_str(),
                    end.n_tokens.min(TOKENS_MAX),
                    end.branch.as_ref(),
                    end.now.0,
                    task,
                ],
            )?;
            if n_ended > 0 {
                sql.execute(DELETE_PLACE, values![task])?;
            }
            if let (1.., Some(text)) = (n_ended, &end.delivery) {
                let insert = "INSERT INTO mailbox (task_id, text, created) VALUES ($1, $2, $3)";
                sql.execute(insert, values![task, text, end.now.0])?;
            }
            Ok(n_ended > 0)
        })
    }

    /// Keeps the place of a running turn; returns whether one is running.
    pub(crate) fn keep_task_place(
        &mut self,
        task: &SessionId,
        place: &TaskPlace,
    ) -> Result<bool, StoreError> {
        self.write_transaction(|sql| {
            let insert = "INSERT INTO task_places (session_id, place)
                 SELECT session_id, $2 FROM tasks WHERE session_id = $1 AND state = 'running'";
            Ok(sql.execute(insert, values![task, place.as_str()])? > 0)
        })
    }

    /// Deletes the place of a task.
    pub(crate) fn forget_task_place(&mut self, task: &SessionId) -> Result<(), StoreError> {
        self.write_transaction(|sql| sql.execute(DELETE_PLACE, values![task]).map(drop))
    }

    /// Reads the place of a running turn.
    pub(crate) fn task_place(&mut self, task: &SessionId) -> Result<Option<TaskPlace>, StoreError> {
        self.read_transaction(|sql| {
            let find = "SELECT p.place FROM task_places p JOIN tasks t ON t.session_id = p.session_id
                 WHERE p.session_id = $1 AND t.state = 'running'";
            sql.query_one(find, values![task], |columns| columns.read_string(0).map(TaskPlace::new))
        })
    }

    pub(crate) fn find_task(&mut self, task: &SessionId) -> Result<Option<TaskRow>, StoreError> {
        self.read_transaction(|sql| {
            sql.query_one(concat!(tasks!(), "AND t.session_id = $1"), values![task], read_task_row)
        })
    }

    /// Lists the tasks of a session in the order they began.
    pub(crate) fn list_tasks(&mut self, parent: &SessionId) -> Result<Vec<TaskRow>, StoreError> {
        self.read_transaction(|sql| {
            let find = concat!(tasks!(), "AND s.parent_session_id = $1 ORDER BY s.created, s.id LIMIT $2");
            sql.query_all(find, values![parent, TASKS_MAX], read_task_row)
        })
    }

    /// Lists the deliveries that wait for a session, oldest first.
    pub(crate) fn pending_deliveries(&mut self, parent: &SessionId) -> Result<Vec<Delivery>, StoreError> {
        self.read_transaction(|sql| {
            sql.query_all(
                "SELECT m.id, m.task_id, m.text, m.created
                 FROM mailbox m JOIN sessions s ON s.id = m.task_id
                 WHERE s.parent_session_id = $1 AND m.delivered_seq IS NULL ORDER BY m.id LIMIT $2",
                values![parent, i64::from(PAGE_MAX)],
                read_delivery,
            )
        })
    }

    /// Lists the deliveries of one task that wait for its parent, oldest first.
    pub(crate) fn pending_task_deliveries(&mut self, task: &SessionId) -> Result<Vec<Delivery>, StoreError> {
        self.read_transaction(|sql| {
            let find = "SELECT id, task_id, text, created FROM mailbox
                 WHERE task_id = $1 AND delivered_seq IS NULL ORDER BY id LIMIT $2";
            sql.query_all(find, values![task, i64::from(PAGE_MAX)], read_delivery)
        })
    }

    /// Stores an entry with the deliveries in it, each of which must have waited for this session.
    pub(crate) fn append_with_deliveries(
        &mut self,
        session: &SessionId,
        seq: u64,
        delivered: &DeliveredEntry<'_, EncodedMessage>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.write_transaction(|sql| {
            append_message(sql, session, seq, delivered.entry, now)?;
            delivered.deliveries.iter().try_for_each(|delivery| mark_delivered(sql, session, seq, *delivery))
        })
    }
}

fn mark_delivered(
    sql: &mut dyn SqlTransaction,
    session: &SessionId,
    seq: u64,
    delivery: DeliveryId,
) -> Result<(), SqlError> {
    let n_updated = sql.execute(
        "UPDATE mailbox SET delivered_seq = $1
         WHERE id = $2 AND delivered_seq IS NULL
           AND task_id IN (SELECT id FROM sessions WHERE parent_session_id = $3)",
        values![seq, delivery.0, session],
    )?;
    match n_updated {
        0 => Err(StoreError::AlreadyDelivered { session: session.clone(), delivery }.into()),
        _ => Ok(()),
    }
}

fn read_delivery(columns: &dyn SqlRow) -> Result<Delivery, SqlError> {
    Ok(Delivery {
        id: DeliveryId(columns.read_int(0)?),
        task: SessionId::new(columns.read_string(1)?),
        text: columns.read_string(2)?,
        created: Timestamp(columns.read_int(3)?),
    })
}

fn read_task_row(columns: &dyn SqlRow) -> Result<TaskRow, SqlError> {
    Ok(TaskRow {
        task: SessionId::new(columns.read_string(0)?),
        parent: SessionId::new(columns.read_string(1)?),
        agent_type: foreign_agent_type(columns.read_optional_string(2)?),
        title: columns.read_string(3)?,
        // The table has no other; an unknown one would have no process that drives it.
        state: TaskState::parse(columns.get_text(4)?.unwrap_or_default()).unwrap_or(TaskState::Lost),
        n_turns: u32::try_from(columns.read_int(5)?).unwrap_or(u32::MAX),
        n_tokens: columns.read_count(6)?,
        started: Timestamp(columns.read_int(7)?),
        ended: columns.get_int(8)?.map(Timestamp),
        branch: columns.read_optional_string(9)?,
        has_place: columns.read_count(10)? > 0,
    })
}
