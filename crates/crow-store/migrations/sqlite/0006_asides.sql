-- What questions to a model took that are no messages, such as that for a summary; `seq` is the place of the message
-- that came next.
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
