-- Where a session stands in Spec Kit: which project and feature it works on.
CREATE TABLE speckit_session (
    session_id   TEXT PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    project_root TEXT NOT NULL,
    feature_dir  TEXT,
    last_command TEXT,
    updated      BIGINT NOT NULL
);

-- What commands of Spec Kit came to, the newest of each session.
CREATE TABLE speckit_event (
    id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    ts         BIGINT NOT NULL,
    command    TEXT NOT NULL,
    args_sha   TEXT,
    outcome    TEXT NOT NULL,
    files      TEXT NOT NULL
);
CREATE INDEX speckit_event_by_session ON speckit_event (session_id, id);
