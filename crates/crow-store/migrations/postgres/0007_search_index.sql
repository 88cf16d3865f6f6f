-- Each character of Chinese, Japanese and Korean is a word of the search index, because these are written without
-- spaces. What Crow adds about a session is no part of the index. Messages that contain either leave the index; opening
-- the database indexes messages that are missing there.
SET LOCAL statement_timeout = '590s';
DELETE FROM message_search WHERE message_id IN (
    SELECT id FROM messages WHERE role <> 'tool' AND data ~
        '[\u3005-\uD7A3\uF900-\uFAFF\uFF66-\uFFDC\U0001AFF0-\U0001B16F\U00020000-\U0003FFFD]'
    UNION ALL SELECT id FROM messages WHERE role = 'user' AND data LIKE '%"crow:%'
);
