-- The tables of the SQLite schema, in one go. Times are milliseconds since 1970.

CREATE TABLE prompts (
    id   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash BIGINT NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX prompts_by_hash ON prompts (hash);

CREATE TABLE sessions (
    id                TEXT PRIMARY KEY,
    parent_session_id TEXT REFERENCES sessions (id) ON DELETE CASCADE,
    agent_type        TEXT,
    cwd               TEXT NOT NULL,
    model             TEXT NOT NULL,
    mode              TEXT NOT NULL,
    title             TEXT,
    prompt_id         BIGINT NOT NULL REFERENCES prompts (id),
    n_messages        BIGINT NOT NULL DEFAULT 0,
    created           BIGINT NOT NULL,
    updated           BIGINT NOT NULL,
    thought_level     TEXT NOT NULL DEFAULT 'default',
    agent_session_id  TEXT,
    config            TEXT NOT NULL DEFAULT '{}',
    forked_from       TEXT
);
CREATE INDEX sessions_by_parent ON sessions (parent_session_id) WHERE parent_session_id IS NOT NULL;
CREATE INDEX sessions_by_prompt ON sessions (prompt_id);

CREATE TABLE messages (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id    TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq           BIGINT NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    data          TEXT NOT NULL,
    input_tokens  BIGINT,
    output_tokens BIGINT,
    created       BIGINT NOT NULL,
    UNIQUE (session_id, seq)
);

CREATE TABLE message_search (
    message_id BIGINT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    words      TSVECTOR NOT NULL
);
CREATE INDEX message_search_by_words ON message_search USING gin (words);

CREATE TABLE compaction_history (
    session_id    TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    generation    BIGINT NOT NULL,
    old_first     BIGINT NOT NULL,
    new_first     BIGINT NOT NULL,
    n_messages    BIGINT NOT NULL,
    summary       TEXT,
    said          TEXT NOT NULL,
    pruned        TEXT NOT NULL,
    tokens_before BIGINT NOT NULL,
    tokens_after  BIGINT NOT NULL,
    created       BIGINT NOT NULL,
    undone        BIGINT,
    PRIMARY KEY (session_id, generation)
);

CREATE TABLE blobs (
    hash TEXT PRIMARY KEY,
    data BYTEA NOT NULL
);
CREATE TABLE blob_uses (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    hash       TEXT NOT NULL REFERENCES blobs (hash),
    purpose    TEXT NOT NULL CHECK (purpose IN ('image', 'file')),
    PRIMARY KEY (session_id, hash, purpose)
);
CREATE INDEX blob_uses_by_hash ON blob_uses (hash);

CREATE TABLE file_changes (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    turn       BIGINT NOT NULL,
    call       TEXT NOT NULL,
    path       TEXT NOT NULL,
    before     TEXT NOT NULL CHECK (before IN ('missing', 'content', 'unknown')),
    blob       TEXT REFERENCES blobs (hash),
    mode       BIGINT,
    after      TEXT,
    created    BIGINT NOT NULL,
    undone     BIGINT
);
CREATE INDEX file_changes_by_session ON file_changes (session_id, turn);
