//! Errors of a database, distinguished by what the user has to do about them.

use std::fmt;

use crow_core::SessionId;

use crate::DeliveryId;

/// The holder of an exclusive lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseHolder {
    /// Another session of this process, which may serve several clients.
    ThisProcess,
    /// Another process.
    OtherProcess {
        /// Its program or process, as far as it is known.
        description: String,
        /// Its ID, if it seems to be a process of this machine.
        pid: Option<u32>,
    },
}

impl LeaseHolder {
    /// A process of which only these words are known.
    pub(crate) fn unknown_process(words: &str) -> Self {
        Self::OtherProcess { description: words.to_owned(), pid: None }
    }
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ThisProcess => f.write_str("for another client of this process"),
            Self::OtherProcess { description, .. } => write!(f, "in another process ({description})"),
        }
    }
}

/// The reason why a store operation failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The file is not a database.
    #[error("{database} is not a database; move it away or name another file")]
    NotADatabase { database: String },
    /// The file is another program's database.
    #[error("{database} is the database of another program and was left untouched; name another file")]
    OtherProgram { database: String },
    /// The file was written by a later version.
    #[error(
        "{database} has format {format} and this version of crow knows up to {known_format}; install a newer crow"
    )]
    NewerFormat {
        database: String,
        /// Format of the file.
        format: i64,
        /// Newest format that this version supports.
        known_format: i64,
    },
    #[error(
        "the database {database} is damaged; `crow-cli doctor --salvage` saves what can be read, and keeps the file"
    )]
    Damaged { database: String },
    /// The file or its directory is not writable.
    #[error("the database {database} is read-only; make the file and its directory writable")]
    ReadOnly { database: String },
    /// Another process held a lock for too long.
    #[error("the database {database} is locked by another process; wait for it or end it, then try again")]
    Locked { database: String },
    /// The disk is full; what was stored before is intact.
    #[error("the disk is full for the database {database}; free some disk space and try again")]
    Full { database: String },
    /// The disk, or a limit of the system, refused a read or a write; what was stored before is intact.
    #[error(
        "the database {database} could not be read or written ({reason}); check the disk and its free space"
    )]
    Disk {
        database: String,
        /// The system's message.
        reason: String,
    },
    /// The file could not be opened or created.
    #[error("the database {database} cannot be opened ({reason}); check the path and its permissions")]
    CannotOpen {
        database: String,
        /// The system's message.
        reason: String,
    },
    /// The server cannot be reached, or the connection broke.
    #[error(
        "the database {database} cannot be reached ({reason}); check that its server is running and that db_uri is right"
    )]
    Unreachable { database: String, reason: String },
    /// The server rejected the credentials.
    #[error(
        "the database {database} rejected our credentials ({reason}); check the user, the password and the name in db_uri"
    )]
    AccessDenied {
        database: String,
        /// The server's message.
        reason: String,
    },
    /// A turn is running in this session.
    #[error("session {session} is in use {holder}; wait until its turn has ended, or stop it there")]
    Busy { session: SessionId, holder: LeaseHolder },
    /// Another process stored a message at this sequence number first; load the session again.
    #[error("session {session} was continued elsewhere at message {seq}; load the session again")]
    ConcurrentWrite {
        session: SessionId,
        /// The sequence number that both wanted.
        seq: u64,
    },
    /// A delivery is in the session's history already, or waits for another session.
    #[error("delivery {delivery} no longer waits for session {session}; load the session again")]
    AlreadyDelivered {
        /// The session that claimed it.
        session: SessionId,
        delivery: DeliveryId,
    },
    /// A session without a parent cannot be a task.
    #[error("there is no session {0} that another session started")]
    NoTask(SessionId),
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// A message cannot be read, or is missing.
    #[error("message {seq} of session {session} cannot be read: {reason}")]
    BadRow {
        session: SessionId,
        /// The message's sequence number.
        seq: u64,
        reason: String,
    },
    /// A new session got an ID that exists already.
    #[error("session {0} exists already; create a new one")]
    NameTaken(SessionId),
    #[error("the database is closed")]
    Closed,
    /// Any other database error.
    #[error("the database {database} failed: {reason}")]
    Failed {
        database: String,
        /// The database's message.
        reason: String,
    },
}
