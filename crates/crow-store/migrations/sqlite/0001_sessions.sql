-- Times are milliseconds since 1970. Ids of sessions are words a person can say.

-- A system prompt is long and most sessions share one, so each is kept once, found by its hash.
CREATE TABLE prompts (
    id   INTEGER PRIMARY KEY,
    hash INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE INDEX prompts_by_hash ON prompts (hash);

CREATE TABLE sessions (
    id                TEXT PRIMARY KEY NOT NULL,
    parent_session_id TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    agent_type        TEXT,
    cwd               TEXT NOT NULL,
    model             TEXT NOT NULL,
    mode              TEXT NOT NULL,
    title             TEXT,
    prompt_id         INTEGER NOT NULL REFERENCES prompts (id),
    n_messages        INTEGER NOT NULL DEFAULT 0,
    created           INTEGER NOT NULL,
    updated           INTEGER NOT NULL
) STRICT;
-- No index on `updated`: every message would pay for it, and a list of thousands is sorted in milliseconds.
CREATE INDEX sessions_by_parent ON sessions (parent_session_id) WHERE parent_session_id IS NOT NULL;
CREATE INDEX sessions_by_prompt ON sessions (prompt_id);

-- One row is one message, in the order it was said. A compaction starts the next generation.
CREATE TABLE messages (
    id            INTEGER PRIMARY KEY,
    session_id    TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    generation    INTEGER NOT NULL DEFAULT 0,
    seq           INTEGER NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    data          TEXT NOT NULL,
    input_tokens  INTEGER,
    output_tokens INTEGER,
    created       INTEGER NOT NULL,
    UNIQUE (session_id, generation, seq)
) STRICT;

-- What people and models said, by words. The words point at messages; the text itself is only there.
CREATE VIRTUAL TABLE message_search USING fts5 (
    text,
    content = '',
    contentless_delete = 1,
    tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TRIGGER messages_unsearch AFTER DELETE ON messages BEGIN
    DELETE FROM message_search WHERE rowid = old.id;
END;
