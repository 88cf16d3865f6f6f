-- A prompt is a template, kept once, by content; what it came to in a session's folder is a system prompt.
ALTER TABLE prompts RENAME TO system_prompts;
DROP INDEX prompts_by_hash;
CREATE INDEX system_prompts_by_hash ON system_prompts (hash);
ALTER TABLE sessions RENAME COLUMN prompt_id TO system_prompt_id;

CREATE TABLE prompts (
    id       INTEGER PRIMARY KEY,
    hash     INTEGER NOT NULL,
    template TEXT NOT NULL
) STRICT;
CREATE INDEX prompts_by_hash ON prompts (hash);
ALTER TABLE sessions ADD COLUMN prompt_id INTEGER REFERENCES prompts (id);
CREATE INDEX sessions_by_template ON sessions (prompt_id) WHERE prompt_id IS NOT NULL;

-- The tools that the model was last offered, as JSON.
CREATE TABLE tool_definitions (
    id          INTEGER PRIMARY KEY,
    hash        INTEGER NOT NULL,
    definitions TEXT NOT NULL
) STRICT;
CREATE INDEX tool_definitions_by_hash ON tool_definitions (hash);
ALTER TABLE sessions ADD COLUMN tools_id INTEGER REFERENCES tool_definitions (id);
CREATE INDEX sessions_by_tools ON sessions (tools_id) WHERE tools_id IS NOT NULL;

UPDATE sessions SET agent_type = CASE WHEN parent_session_id IS NULL THEN 'crow-cli' ELSE 'crow-child' END
    WHERE agent_type IS NULL;

-- Which prompt of the session a message belongs to, counted from 1.
ALTER TABLE messages ADD COLUMN turn INTEGER NOT NULL DEFAULT 0;
UPDATE messages SET turn = counted.turn
    FROM (SELECT id, SUM(role = 'user') OVER (PARTITION BY session_id ORDER BY seq) AS turn FROM messages) counted
    WHERE counted.id = messages.id;
