//! What can go wrong with a database, told apart by what a person has to do about it.

use std::fmt;

use crow_core::SessionId;

use crate::DeliveryId;

/// Who has what one at a time can have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeaseHolder {
    /// Somebody else in this process, which may serve several clients.
    Ourselves,
    /// Another process, as far as that is known.
    Other(String),
}

impl fmt::Display for LeaseHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ourselves => f.write_str("for another client of this Crow"),
            Self::Other(who) => write!(f, "in another process ({who})"),
        }
    }
}

/// Why the store could not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The file holds something else.
    #[error("{database} is not a database; move it away or name another file")]
    NotADatabase {
        /// Which.
        database: String,
    },
    /// The file is another program's database.
    #[error("{database} is the database of another program and was left untouched; name another file")]
    OtherProgram {
        /// Which.
        database: String,
    },
    /// The file was written by a later version.
    #[error(
        "{database} has format {found} and this version of crow knows up to {known}; install a newer crow"
    )]
    Newer {
        /// Which.
        database: String,
        /// Its format.
        found: i64,
        /// The newest format known here.
        known: i64,
    },
    /// The file is damaged.
    #[error(
        "the database {database} is damaged; `crow-cli doctor --salvage` saves what can be read, and keeps the file"
    )]
    Damaged {
        /// Which.
        database: String,
    },
    /// The file or its folder may not be written.
    #[error("the database {database} is read-only; make the file and its folder writable")]
    ReadOnly {
        /// Which.
        database: String,
    },
    /// Another process kept the file locked for too long.
    #[error("the database {database} is locked by another process; wait for it or end it, then try again")]
    Locked {
        /// Which.
        database: String,
    },
    /// There is no room left; what was stored before stands.
    #[error("there is no room left for the database {database}; free some disk space and try again")]
    Full {
        /// Which.
        database: String,
    },
    /// The disk, or a limit of the system, refused a read or a write; what was stored before stands.
    #[error(
        "the database {database} could not be read or written ({why}); check the disk and its free space"
    )]
    Disk {
        /// Which.
        database: String,
        /// What the system said.
        why: String,
    },
    /// The file could not be opened or made.
    #[error("the database {database} cannot be opened ({why}); check the path and its permissions")]
    CannotOpen {
        /// Which.
        database: String,
        /// What the system said.
        why: String,
    },
    /// The server cannot be reached, or the connection to it broke.
    #[error(
        "the database {database} cannot be reached ({why}); check that its server runs and that db_uri names it"
    )]
    Unreachable {
        /// Which.
        database: String,
        /// What stood in the way.
        why: String,
    },
    /// The server let nobody in.
    #[error(
        "the database {database} let us not in ({why}); check the user, the password and the name in db_uri"
    )]
    NotLetIn {
        /// Which.
        database: String,
        /// What it said.
        why: String,
    },
    /// Somebody works in this session at the moment.
    #[error("session {session} is at work {holder}; wait until its turn has ended, or stop it there")]
    Busy {
        /// The session.
        session: SessionId,
        /// Who has it.
        holder: LeaseHolder,
    },
    /// Someone else wrote this place of the session first; load it again.
    #[error("session {session} was continued elsewhere at message {seq}; load it again")]
    OtherWriter {
        /// The session.
        session: SessionId,
        /// The place both wanted.
        seq: u64,
    },
    /// A delivery stands in the session's history already, or waits for another session.
    #[error("delivery {delivery} does not wait for session {session} any longer; load it again")]
    AlreadyDelivered {
        /// The session that wanted it.
        session: SessionId,
        /// Which.
        delivery: DeliveryId,
    },
    /// A session that no other started cannot be a task.
    #[error("there is no session {0} that another session started")]
    NoTask(SessionId),
    /// No such session.
    #[error("there is no session {0}")]
    NoSession(SessionId),
    /// A message cannot be read back, or is missing.
    #[error("message {seq} of session {session} cannot be read: {why}")]
    BadRow {
        /// The session.
        session: SessionId,
        /// The message's place.
        seq: u64,
        /// What is wrong with it.
        why: String,
    },
    /// A new session got a name that another has.
    #[error("there is a session {0} already; open a new one")]
    NameTaken(SessionId),
    /// The store was closed.
    #[error("the database is closed")]
    Closed,
    /// Anything else a database says.
    #[error("the database {database} failed: {why}")]
    Failed {
        /// Which.
        database: String,
        /// What it said.
        why: String,
    },
}
