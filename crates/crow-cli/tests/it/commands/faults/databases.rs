//! Faults of the database and of its disk.

use std::fs;
use std::path::PathBuf;

use rusqlite::Connection;

use super::super::Stage;
use super::{Fault, PLAIN, Surroundings};

/// The tables of format 6.
const OLD_SCHEMA: [&str; 6] = [
    include_str!("../../../../../crow-store/migrations/sqlite/0001_sessions.sql"),
    include_str!("../../../../../crow-store/migrations/sqlite/0002_thought_level.sql"),
    include_str!("../../../../../crow-store/migrations/sqlite/0003_lasting.sql"),
    include_str!("../../../../../crow-store/migrations/sqlite/0004_tasks.sql"),
    include_str!("../../../../../crow-store/migrations/sqlite/0005_speckit.sql"),
    include_str!("../../../../../crow-store/migrations/sqlite/0006_asides.sql"),
];

const OLD_SESSION: &str =
    "PRAGMA application_id = 0x43524f57; PRAGMA user_version = 6; PRAGMA journal_mode = WAL;
    INSERT INTO prompts VALUES (1, 0, 'You are a crow.');
    INSERT INTO sessions (id, cwd, model, mode, prompt_id, n_messages, created, updated)
        VALUES ('calm-tiny-finch', '/', 'main', 'ask', 1, 1, 1, 1);
    INSERT INTO messages (session_id, seq, role, data, created) VALUES ('calm-tiny-finch', 0, 'user',
        '{\"role\":\"user\",\"id\":\"msg-0\",\"content\":[{\"type\":\"text\",\"text\":\"caw\"}]}', 1);
    INSERT INTO message_search (rowid, text) VALUES (1, 'caw');";

pub(super) const FAULTS: [Fault; 6] = [
    Fault {
        title: "The disk is full",
        event: "The database cannot grow any more.",
        script: "text \"A parser.\"",
        prepare: |stage| {
            stage.crow("crow run 'Explain this folder.'");
            Surroundings::default()
        },
        commands: &["(trap '' XFSZ; ulimit -f 8; crow-cli run -s calm-tiny-finch 'Explain its tests.')"],
        advice: "Nothing of what was stored is lost, and no request is sent whose answer could not be stored. Free some space and send\n\
                 the prompt again.",
        ..PLAIN
    },
    Fault {
        title: "The configuration directory cannot be written",
        event: "The home directory is read-only, or the directory cannot be created.",
        commands: &["crow-cli -d /proc/crow run 'Explain this folder.'"],
        advice: "Without a place for the session there is no turn. `--config-dir` names another directory.",
        ..PLAIN
    },
    Fault {
        title: "The database is locked",
        event: "Another program is in a transaction that writes, such as an SQL shell or a backup, and does not end it.",
        script: "text \"A parser.\"",
        prepare: |stage| {
            stage.crow("crow run 'Explain this folder.'");
            let other = Connection::open(database(stage)).expect("it opens");
            other.execute_batch("BEGIN IMMEDIATE").expect("it is free");
            Surroundings::with(other)
        },
        commands: &["crow-cli run -s calm-tiny-finch 'Explain its tests.'"],
        advice: "Crow waits five seconds first, and nothing was sent to the model. Other Crows never hold the lock that long: any number\n\
                 of them may use one database.",
        ..PLAIN
    },
    Fault {
        title: "The database is damaged",
        event: "Something else has written into the file, or a disk has lost a part of it.",
        script: "text \"A parser.\"",
        prepare: |stage| {
            stage.crow("crow run 'Explain this folder.'");
            let file = database(stage);
            let mut bytes = fs::read(&file).expect("the database is there");
            // All but the first page, which contains the application ID.
            bytes.get_mut(4096..).expect("it has several pages").fill(0xAA);
            fs::write(&file, bytes).expect("written");
            Surroundings::default()
        },
        commands: &["crow-cli run 'Explain this folder.'", "crow-cli doctor --salvage"],
        advice: "A turn ends where it meets the damage. Here nothing but the first page was left; as a rule, most sessions are saved. The\n\
                 damaged file is kept.",
        ..PLAIN
    },
    Fault {
        title: "The database is of an older version",
        event: "An older Crow has used the directory.",
        script: "text \"You said caw.\"",
        prepare: |stage| {
            let old = Connection::open(database(stage)).expect("it opens");
            old.execute_batch(&OLD_SCHEMA.concat()).expect("the tables can be made");
            old.execute_batch(OLD_SESSION).expect("a session can be stored");
            Surroundings::default()
        },
        commands: &["crow-cli run -s calm-tiny-finch 'What did I say?'", "ls ~/.crow/crow.db.*"],
        advice: "The database is converted when it is opened, and the file as it was is kept. The older Crow cannot open the converted\n\
                 one; delete the copy when you no longer need to go back.",
        ..PLAIN
    },
    Fault {
        title: "The database is of a newer version",
        event: "A newer Crow has used the directory.",
        script: "text \"A parser.\"",
        prepare: |stage| {
            stage.crow("crow run 'Explain this folder.'");
            let file = database(stage);
            let mut bytes = fs::read(&file).expect("the database is there");
            // The user version of SQLite.
            bytes.get_mut(60..64).expect("it has a header").copy_from_slice(&99_u32.to_be_bytes());
            fs::write(&file, bytes).expect("written");
            // It has the header as well.
            let _ = fs::remove_file(file.with_extension("db-wal"));
            Surroundings::default()
        },
        advice: "The file is left as it is.",
        ..PLAIN
    },
];

fn database(stage: &Stage) -> PathBuf {
    stage.world.home().join(".crow/crow.db")
}
