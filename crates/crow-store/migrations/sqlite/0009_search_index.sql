-- Each character of Chinese, Japanese and Korean is a word of the search index, because these are written without
-- spaces. What Crow adds about a session is no part of the index. Messages that contain either leave the index; opening
-- the database indexes messages that are missing there.
DELETE FROM message_search WHERE rowid IN (
    SELECT id FROM messages WHERE role <> 'tool' AND data GLOB '*[' || char(
        0x3005, 0x2d, 0xd7a3, 0xf900, 0x2d, 0xfaff, 0xff66, 0x2d, 0xffdc, 0x1aff0, 0x2d, 0x1b16f, 0x20000, 0x2d, 0x3fffd
    ) || ']*'
    UNION ALL SELECT id FROM messages WHERE role = 'user' AND data GLOB '*"crow:*'
);
