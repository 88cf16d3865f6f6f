//! For tests only: a scripted model server that refuses what strict providers refuse.
//!
//! Knows a provider's JSON and HTTP, and nothing of Crow: it tests the program from outside.

mod checker;
mod model_server;
mod script;

pub use checker::violations;
pub use model_server::ModelServer;
pub use script::{Answer, Script, Step};

pub mod client;
pub mod golden;
