//! Owns the ACP wire, both ends and every transport.
//!
//! Everything else in Crow says [`crow_core::Update`] and [`Incoming`]; only `v1.rs` here spells ACP's own
//! types, and no SDK type leaves this crate.

mod abilities;
mod client;
mod editor;
mod form;
mod greeting;
mod incoming;
mod outbox;
mod program;
mod server;
mod socket;
mod splice;
mod transport;
mod v1;

pub use abilities::Abilities;
pub use client::{
    AgentAbilities, ClientEvent, Connection, HELLO_WAIT_MAX, Heard, Hello, Lasting, OpenedSession,
    PermissionAnswer, PermissionChoice, PermissionQuestion, Prompted, SessionOption, StopReason, Upstream,
    Want, Wanted, drive,
};
pub use crow_process::{Command as AgentCommand, Ended as ProgramEnded, SpawnError};
pub use editor::{ClientError, ClientOutput, ClientTerminal, Editor, Exit, Launch};
pub use form::{Choice, Form, Formed};
pub use incoming::{
    About, Answer, Incoming, Opened, Place, SessionInfo, SessionPage, Spoken, Steered, Ticket, Until, Which,
};
pub use outbox::{Answered, Answers, Client, Question, Subject};
pub use program::{AgentEnd, AgentProgram, Launcher};
pub use server::{ServeError, serve};
pub use socket::{
    Admission, ConnectError, Farewell, Knock, SocketDoor, Token, VisitLimits, Way, connect, listen,
    receive_visitors, way_to,
};
pub use splice::{Left, splice};
pub use transport::{Lines, duplex, stdio};
