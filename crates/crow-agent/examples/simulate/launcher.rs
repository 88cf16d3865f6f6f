//! Starts the simulated programs of children.

use std::io;
use std::sync::Arc;

use crow_acp::{AgentCommand, AgentProgram, LineTransport, channel_transport};
use crow_children::ChildLauncher;
use futures_util::future::BoxFuture;
use tokio::sync::mpsc;

use crate::child::{ChildPipes, serve_child};
use crate::fault::Fault;
use crate::world::World;

/// Lines in a pipe.
const PIPE_LINES: usize = 64;

pub(crate) struct FakeLauncher {
    pub(crate) world: Arc<World>,
}

impl ChildLauncher for FakeLauncher {
    fn start_program<'a>(
        &'a self,
        _agent_name: &'a str,
        _command: AgentCommand,
    ) -> BoxFuture<'a, Result<(LineTransport, Option<AgentProgram>), String>> {
        Box::pin(async move {
            self.world.pass_boundary("child starts").await;
            if self.world.draws_fault(Fault::ChildNotStarted) {
                return Err("there is no such program".to_owned());
            }
            let (to_child, from_parent) = mpsc::channel::<io::Result<String>>(PIPE_LINES);
            let (to_parent, from_child) = mpsc::channel(PIPE_LINES);
            tokio::spawn(serve_child(self.world.clone(), ChildPipes { from_parent, to_parent }));
            Ok((channel_transport(from_child, to_child), None))
        })
    }
}
