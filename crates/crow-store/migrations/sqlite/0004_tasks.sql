-- A piece of work that one session gave to another, its child. The child's row says whose it is, which kind of agent
-- does it, and what it is about.
CREATE TABLE tasks (
    session_id TEXT PRIMARY KEY NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    state      TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed', 'cancelled', 'lost')),
    n_rounds   INTEGER NOT NULL,
    n_tokens   INTEGER NOT NULL,
    started    INTEGER NOT NULL,
    ended      INTEGER,
    branch     TEXT
) STRICT;

-- Ends of rounds, each waiting for the session that gave the task until it stands there as the message `delivered_seq`.
CREATE TABLE mailbox (
    id            INTEGER PRIMARY KEY,
    task_id       TEXT NOT NULL REFERENCES tasks (session_id) ON DELETE CASCADE,
    text          TEXT NOT NULL,
    created       INTEGER NOT NULL,
    delivered_seq INTEGER
) STRICT;
CREATE INDEX mailbox_by_task ON mailbox (task_id);
