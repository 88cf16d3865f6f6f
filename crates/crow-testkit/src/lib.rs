//! For tests only: a scripted model server that rejects what strict providers reject, a fake editor that rejects
//! violations of the protocol, and an agent and an MCP server that misbehave on request.
//!
//! Knows the providers' JSON, HTTP and the protocol's lines, and nothing of Crow: it tests the program from outside.

mod checker;
mod contract;
mod environment;
mod helper_binary;
mod model_server;
mod nats_cluster;
mod nats_request;
mod nats_server;
mod random;
mod recording;
mod script;
mod shown;

pub use checker::messages::messages_violations;
pub use checker::responses::responses_violations;
pub use checker::violations;
pub use contract::Contract;
pub use model_server::ModelServer;
pub use nats_cluster::NatsCluster;
pub use nats_request::PublishedSubjects;
pub use nats_server::NatsServer;
pub use random::SeededRandom;
pub use script::{Answer, Script, Step};
pub use shown::ShownContent;

pub mod agent;
pub mod client;
pub mod example;
pub mod golden;
pub mod mcp_server;
pub mod replay;
pub mod terminal;
pub mod tracked_command;
