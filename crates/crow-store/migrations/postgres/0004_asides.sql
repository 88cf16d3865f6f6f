-- What questions to a model took that are no messages, such as that for a summary; `seq` is the place of the message
-- that came next.
CREATE TABLE asides (
    id                   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id           TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    seq                  BIGINT NOT NULL,
    input_tokens         BIGINT NOT NULL,
    output_tokens        BIGINT NOT NULL,
    cached_tokens        BIGINT NOT NULL,
    cache_written_tokens BIGINT NOT NULL,
    cost                 BIGINT,
    created              BIGINT NOT NULL
);
CREATE INDEX asides_by_session ON asides (session_id, id);
