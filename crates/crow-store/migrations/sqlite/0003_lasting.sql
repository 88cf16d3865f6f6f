-- A place in a session is taken once, whatever was compacted since.
CREATE TABLE messages_by_place (
    id            INTEGER PRIMARY KEY,
    session_id    TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq           INTEGER NOT NULL,
    role          TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'tool')),
    data          TEXT NOT NULL,
    input_tokens  INTEGER,
    output_tokens INTEGER,
    created       INTEGER NOT NULL,
    UNIQUE (session_id, seq)
) STRICT;
INSERT INTO messages_by_place
    SELECT id, session_id, seq, role, data, input_tokens, output_tokens, created FROM messages ORDER BY id;
DROP TABLE messages;
ALTER TABLE messages_by_place RENAME TO messages;
CREATE TRIGGER messages_unsearch AFTER DELETE ON messages BEGIN
    DELETE FROM message_search WHERE rowid = old.id;
END;

-- What an agent of others calls the session, what else is set in it (JSON), and which session it began as a copy of.
ALTER TABLE sessions ADD COLUMN agent_session_id TEXT;
ALTER TABLE sessions ADD COLUMN config TEXT NOT NULL DEFAULT '{}';
ALTER TABLE sessions ADD COLUMN forked_from TEXT;

-- A compaction begins a generation: the model saw the messages old_first .. n_messages before it and sees
-- new_first .. n_messages after it, behind the summary and the prompts at the places in `said`. Nothing is removed.
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

-- Images and former contents of files, each once, by SHA-256.
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

-- What the agent did to files, so that it can be undone: what was there before, and the hash of what it left.
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
