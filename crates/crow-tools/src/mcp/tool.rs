//! A server's tool as one of ours.

use std::sync::Arc;

use crow_core::{Facets, ToolKind, ToolSpec, Touch};
use serde_json::{Map, Value};

use super::{call::call, listing::Listed, server::Server};
use crate::{Running, Tool, ToolCx, Workspace, tool::title};

pub(super) struct McpTool {
    server: Arc<Server>,
    listed: Arc<Listed>,
}

impl McpTool {
    pub(super) fn new(server: Arc<Server>, listed: Arc<Listed>) -> Self {
        Self { server, listed }
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.listed.spec
    }

    fn server(&self) -> Option<&str> {
        Some(&self.server.name)
    }

    fn name_there(&self) -> Option<&str> {
        Some(&self.listed.name)
    }

    // By the tool's name and as anything else: a title or a hint of the server's own could mislead who is asked.
    fn facets(&self, _arguments: &Map<String, Value>, _workspace: &Workspace) -> Facets {
        let (server, tool) = (self.server.name.clone(), self.listed.name.clone());
        Facets {
            title: title(&format!("{server}: {tool}")),
            kind: ToolKind::Other,
            locations: Vec::new(),
            touch: Touch::Calls { server, tool },
        }
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        Box::pin(call(&self.server, &self.listed.name, arguments, cx))
    }
}
