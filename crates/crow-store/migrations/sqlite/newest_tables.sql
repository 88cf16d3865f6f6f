-- The tables after all migrations. UPDATE_EXPECT=1 and the tests of this crate write this file.
CREATE TABLE "system_prompts" (
    id   INTEGER PRIMARY KEY,
    hash INTEGER NOT NULL,
    text TEXT NOT NULL
) STRICT;
CREATE TABLE sessions (
    id                TEXT PRIMARY KEY NOT NULL,
    parent_session_id TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    agent_type        TEXT,
    cwd               TEXT NOT NULL,
    model             TEXT NOT NULL,
    mode              TEXT NOT NULL,
    title             TEXT,
    system_prompt_id         INTEGER NOT NULL REFERENCES "system_prompts" (id),
    n_messages        INTEGER NOT NULL DEFAULT 0,
    created           INTEGER NOT NULL,
    updated           INTEGER NOT NULL
, thought_level TEXT NOT NULL DEFAULT 'default', agent_session_id TEXT, config TEXT NOT NULL DEFAULT '{}', forked_from TEXT, prompt_id INTEGER REFERENCES prompts (id), tools_id INTEGER REFERENCES tool_definitions (id)) STRICT;
CREATE INDEX sessions_by_parent ON sessions (parent_session_id) WHERE parent_session_id IS NOT NULL;
CREATE INDEX sessions_by_prompt ON sessions (system_prompt_id);
CREATE VIRTUAL TABLE message_search USING fts5 (
    text,
    content = '',
    contentless_delete = 1,
    tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TABLE "messages" (
    id            INTEGER PRIMARY KEY,
    session_id    TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq           INTEGER NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    data          TEXT NOT NULL,
    input_tokens  INTEGER,
    output_tokens INTEGER,
    created       INTEGER NOT NULL, turn INTEGER NOT NULL DEFAULT 0,
    UNIQUE (session_id, seq)
) STRICT;
CREATE TRIGGER messages_unsearch AFTER DELETE ON messages BEGIN
    DELETE FROM message_search WHERE rowid = old.id;
END;
CREATE TABLE compaction_history (
    session_id    TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    generation    INTEGER NOT NULL,
    old_first     INTEGER NOT NULL,
    new_first     INTEGER NOT NULL,
    n_messages    INTEGER NOT NULL,
    summary       TEXT,
    said          TEXT NOT NULL,
    pruned        TEXT NOT NULL,
    tokens_before INTEGER NOT NULL,
    tokens_after  INTEGER NOT NULL,
    created       INTEGER NOT NULL,
    undone        INTEGER,
    PRIMARY KEY (session_id, generation)
) STRICT;
CREATE TABLE blobs (
    hash TEXT PRIMARY KEY NOT NULL,
    data BLOB NOT NULL
) STRICT;
CREATE TABLE blob_uses (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    hash       TEXT NOT NULL REFERENCES blobs (hash),
    purpose    TEXT NOT NULL CHECK (purpose IN ('image', 'file')),
    PRIMARY KEY (session_id, hash, purpose)
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_uses_by_hash ON blob_uses (hash);
CREATE TABLE file_changes (
    id         INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    turn       INTEGER NOT NULL,
    call       TEXT NOT NULL,
    path       TEXT NOT NULL,
    before     TEXT NOT NULL CHECK (before IN ('missing', 'content', 'unknown')),
    blob       TEXT REFERENCES blobs (hash),
    mode       INTEGER,
    after      TEXT,
    created    INTEGER NOT NULL,
    undone     INTEGER
) STRICT;
CREATE INDEX file_changes_by_session ON file_changes (session_id, turn);
CREATE TABLE tasks (
    session_id TEXT PRIMARY KEY NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    state      TEXT NOT NULL CHECK (state IN ('running', 'done', 'failed', 'cancelled', 'lost')),
    n_rounds   INTEGER NOT NULL,
    n_tokens   INTEGER NOT NULL,
    started    INTEGER NOT NULL,
    ended      INTEGER,
    branch     TEXT
) STRICT;
CREATE TABLE mailbox (
    id            INTEGER PRIMARY KEY,
    task_id       TEXT NOT NULL REFERENCES tasks (session_id) ON DELETE CASCADE,
    text          TEXT NOT NULL,
    created       INTEGER NOT NULL,
    delivered_seq INTEGER
) STRICT;
CREATE INDEX mailbox_by_task ON mailbox (task_id);
CREATE TABLE speckit_session (
    session_id   TEXT PRIMARY KEY NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    project_root TEXT NOT NULL,
    feature_dir  TEXT,
    last_command TEXT,
    updated      INTEGER NOT NULL
) STRICT;
CREATE TABLE speckit_event (
    id         INTEGER PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    ts         INTEGER NOT NULL,
    command    TEXT NOT NULL,
    args_sha   TEXT,
    outcome    TEXT NOT NULL,
    files      TEXT NOT NULL
) STRICT;
CREATE INDEX speckit_event_by_session ON speckit_event (session_id, id);
CREATE TABLE asides (
    id                   INTEGER PRIMARY KEY,
    session_id           TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq                  INTEGER NOT NULL,
    input_tokens         INTEGER NOT NULL,
    output_tokens        INTEGER NOT NULL,
    cached_tokens        INTEGER NOT NULL,
    cache_written_tokens INTEGER NOT NULL,
    cost                 INTEGER,
    created              INTEGER NOT NULL
) STRICT;
CREATE INDEX asides_by_session ON asides (session_id, id);
CREATE INDEX system_prompts_by_hash ON system_prompts (hash);
CREATE TABLE prompts (
    id       INTEGER PRIMARY KEY,
    hash     INTEGER NOT NULL,
    template TEXT NOT NULL
) STRICT;
CREATE INDEX prompts_by_hash ON prompts (hash);
CREATE INDEX sessions_by_template ON sessions (prompt_id) WHERE prompt_id IS NOT NULL;
CREATE TABLE tool_definitions (
    id          INTEGER PRIMARY KEY,
    hash        INTEGER NOT NULL,
    definitions TEXT NOT NULL
) STRICT;
CREATE INDEX tool_definitions_by_hash ON tool_definitions (hash);
CREATE INDEX sessions_by_tools ON sessions (tools_id) WHERE tools_id IS NOT NULL;
CREATE TABLE task_places (
    session_id TEXT PRIMARY KEY NOT NULL REFERENCES tasks (session_id) ON DELETE CASCADE,
    place      TEXT NOT NULL
) STRICT;
