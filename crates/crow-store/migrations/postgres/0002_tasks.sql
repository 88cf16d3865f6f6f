-- A piece of work that one session gave to another, its child. The child's row says whose it is, which kind of agent
-- does it, and what it is about.
CREATE TABLE tasks (
    session_id TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    state      TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed', 'cancelled', 'lost')),
    n_rounds   BIGINT NOT NULL,
    n_tokens   BIGINT NOT NULL,
    started    BIGINT NOT NULL,
    ended      BIGINT,
    branch     TEXT
);

-- Ends of rounds, each waiting for the session that gave the task until it stands there as the message `delivered_seq`.
CREATE TABLE mailbox (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id       TEXT NOT NULL REFERENCES tasks (session_id) ON DELETE CASCADE,
    text          TEXT NOT NULL,
    created       BIGINT NOT NULL,
    delivered_seq BIGINT
);
CREATE INDEX mailbox_by_task ON mailbox (task_id);
