-- A prompt is a template, kept once, by content; what it came to in a session's folder is a system prompt.
ALTER TABLE prompts RENAME TO system_prompts;
ALTER INDEX prompts_by_hash RENAME TO system_prompts_by_hash;
ALTER TABLE sessions RENAME COLUMN prompt_id TO system_prompt_id;

CREATE TABLE prompts (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash     BIGINT NOT NULL,
    template TEXT NOT NULL
);
CREATE INDEX prompts_by_hash ON prompts (hash);
ALTER TABLE sessions ADD COLUMN prompt_id BIGINT REFERENCES prompts (id);
CREATE INDEX sessions_by_template ON sessions (prompt_id) WHERE prompt_id IS NOT NULL;

-- The tools that the model was last offered, as JSON.
CREATE TABLE tool_definitions (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    hash        BIGINT NOT NULL,
    definitions TEXT NOT NULL
);
CREATE INDEX tool_definitions_by_hash ON tool_definitions (hash);
ALTER TABLE sessions ADD COLUMN tools_id BIGINT REFERENCES tool_definitions (id);
CREATE INDEX sessions_by_tools ON sessions (tools_id) WHERE tools_id IS NOT NULL;

UPDATE sessions SET agent_type = CASE WHEN parent_session_id IS NULL THEN 'crow-cli' ELSE 'crow-child' END
    WHERE agent_type IS NULL;

-- Which prompt of the session a message belongs to, counted from 1.
ALTER TABLE messages ADD COLUMN turn BIGINT NOT NULL DEFAULT 0;
UPDATE messages SET turn = counted.turn
    FROM (SELECT id, SUM(CASE WHEN role = 'user' THEN 1 ELSE 0 END) OVER (PARTITION BY session_id ORDER BY seq) AS turn
          FROM messages) counted
    WHERE counted.id = messages.id;
