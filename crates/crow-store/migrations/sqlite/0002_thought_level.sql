-- How hard the model should think; 'default' leaves it to the configuration.
ALTER TABLE sessions ADD COLUMN thought_level TEXT NOT NULL DEFAULT 'default';
