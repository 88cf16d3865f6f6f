-- Where a task runs that outlives the process of its parent: what a later process needs to take it up again, with a
-- secret that signs what the two say. It is a table of its own, so that no look at `tasks` shows the secret, and is gone
-- with the end of the task.
CREATE TABLE task_places (
    session_id TEXT PRIMARY KEY NOT NULL REFERENCES tasks (session_id) ON DELETE CASCADE,
    place      TEXT NOT NULL
) STRICT;
