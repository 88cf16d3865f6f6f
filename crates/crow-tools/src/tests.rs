mod apply_patch;
mod calls;
mod edit;
mod grep;
mod hook;
mod hostile;
mod mcp;
mod mcp_catalog;
mod mcp_hostile;
mod mcp_http;
mod mcp_requests;
mod mcp_sign_in;
mod race;
mod read;
mod search;
mod terminal;
mod tool_offer;
mod undo;
mod web;
mod write;

use std::{
    fs,
    path::{Path, PathBuf},
};

use crow_core::{
    CallId, Confinement, ContentPart, ToolAccess, ToolArguments, ToolCall, ToolCallContent, ToolResult,
};
use expect_test::Expect;
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::{BuiltinToolConfig, ToolCx, ToolProgress, ToolRegistry, Workspace};

/// A project in a directory of its own, with a file beside it.
struct Machine {
    dir: TempDir,
    workspace: Workspace,
    tools: ToolRegistry,
    cancel: CancellationToken,
}

/// Creates the project with `setup`, makes the calls, and compares everything that came of them.
async fn check(setup: fn(&Path), calls: &[(&str, Value)], expect: Expect) {
    let machine = Machine::new(setup);
    let mut said = String::new();
    for (name, arguments) in calls {
        said += &machine.call(name, arguments.clone()).await;
    }
    expect.assert_eq(&said);
}

impl Machine {
    fn new(setup: fn(&Path)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().canonicalize().unwrap().join("project");
        fs::create_dir(&cwd).unwrap();
        setup(&cwd);
        Self {
            workspace: Workspace::new(cwd, &[], vec!["CARGO_MANIFEST_DIR".into()]),
            tools: ToolRegistry::with_builtin_tools(BuiltinToolConfig {
                spill_dir: dir.path().to_owned(),
                ..BuiltinToolConfig::default()
            }),
            dir,
            cancel: CancellationToken::new(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.workspace.cwd().join(name)
    }

    async fn call(&self, name: &str, arguments: Value) -> String {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        self.run(name, ToolArguments::Valid(arguments)).await
    }

    async fn run(&self, name: &str, arguments: ToolArguments) -> String {
        let call = ToolCall {
            id: CallId::from_position(1, 0),
            provider_id: "1".into(),
            name: name.into(),
            arguments,
        };
        let info = self.tools.call_info(&call, &self.workspace);
        let cx = ToolCx { access: &info.access, ..self.cx(&|_| ()) };
        let result = self.tools.run_call(&call, cx).await;
        let outside = self.dir.path().canonicalize().unwrap().display().to_string();
        let head = format!("> {} {:?} {:?}\n", info.title, info.kind, info.access);
        (head + &show(&result)).replace(&outside, "$DIR")
    }

    fn cx<'a>(&'a self, progress: &'a (dyn Fn(ToolProgress) + Send + Sync)) -> ToolCx<'a> {
        ToolCx {
            workspace: &self.workspace,
            editor: None,
            access: &ToolAccess::Nothing,
            may_read_written: true,
            call: None,
            confinement: Confinement::Unconfined,
            cancel: &self.cancel,
            progress,
            undo_recorder: None,
            mcp_session: None,
        }
    }
}

fn show(result: &ToolResult) -> String {
    let mut said = format!("{:?}: ", result.status);
    for part in &result.for_model {
        match part {
            ContentPart::Text(text) => said += text,
            ContentPart::Image { .. }
            | ContentPart::Link { .. }
            | ContentPart::Resource { .. }
            | ContentPart::FromCrow { .. } => {
                said += &format!("{part:?}");
            }
        }
        if !said.ends_with('\n') {
            said += "\n";
        }
    }
    for content in &result.for_client {
        match content {
            ToolCallContent::Text(_) => {}
            ToolCallContent::Image { .. } | ToolCallContent::Diff { .. } => {
                said += &format!("client: {content:?}\n");
            }
        }
    }
    if let Some(plan) = &result.plan {
        said += &format!("plan: {plan:?}\n");
    }
    said
}
