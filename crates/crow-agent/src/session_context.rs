//! Gathers what the model is told about its session: the parts that come before the first prompt, and those about changes.
//! What is told and when is decided in `crow-core`.

use std::path::Path;

use crow_core::{
    ContentPart, ContextShares, CrowPart, EnvironmentFacts, Failure, Prompt, ToolSpec, Transcript,
    TranscriptEntry, environment_part, escape_hidden, estimate_tool_tokens, instructions_part,
    needs_environment, render_context_shares,
};

use crate::clock;
use crate::location::describe_directory;
use crate::turn_context::{SessionState, TurnCx};

impl TurnCx<'_> {
    fn environment_facts(&self) -> EnvironmentFacts {
        let display_path = |path: &Path| escape_hidden(&path.to_string_lossy());
        let config = self.runtime.config();
        EnvironmentFacts {
            working_directory: display_path(self.workspace.cwd()),
            additional_directories: self
                .workspace
                .roots()
                .iter()
                .skip(1)
                .map(|root| display_path(root))
                .collect(),
            platform: std::env::consts::OS.to_owned(),
            date: clock::today(),
            mode: self.settings.borrow().mode,
            sandbox: config.sandbox.describe_limits(config.network),
            shell: config.shell_name.clone(),
            is_brief: self.own_model().is_ok_and(|model| model.gets_core_tools()),
        }
    }

    /// Returns the parts about the session that the model does not know, for the start of a prompt.
    pub(crate) async fn session_context(&self, state: &mut SessionState) -> Vec<ContentPart> {
        let environment = self.environment_facts();
        let at_start =
            match (needs_environment(&state.transcript, &environment), state.directory_at_start.take()) {
                (false, _) => String::new(),
                (true, Some(description)) => description,
                (true, None) => describe_directory(self.runtime, self.workspace).await,
            };
        self.unknown_context(&state.transcript, &environment, &at_start).await
    }

    /// Returns how much of the context window each part of the next request takes, as text.
    pub(crate) async fn describe_context(&self, state: &mut SessionState) -> String {
        self.toolbox.wait_until_connected(self.cancel).await;
        state.transcript.set_tool_tokens(estimate_tool_tokens(&self.current_tools().specs));
        let at_start = state.directory_at_start.as_deref().unwrap_or_default();
        let unsent = self.unknown_context(&state.transcript, &self.environment_facts(), at_start).await;
        // The model has not been told.
        self.config_loader.forget_known_skills().await;
        let shares = ContextShares::new(&state.transcript, &unsent);
        render_context_shares(&shares, self.context_window(), self.context_limit())
    }

    async fn unknown_context(
        &self,
        transcript: &Transcript,
        environment: &EnvironmentFacts,
        at_start: &str,
    ) -> Vec<ContentPart> {
        let instructions = self.config_loader.current_config().instructions.clone();
        let instructions = instructions.and_then(|text| instructions_part(transcript, &text));
        let skills = self.config_loader.unknown_skills(transcript).await;
        let environment = environment_part(transcript, environment, at_start);
        instructions.into_iter().chain(skills).chain(environment).collect()
    }

    /// Appends what changed since the last request of the turn: the mode, the date, and tools that were added.
    pub(crate) async fn append_context_changes(
        &self,
        state: &mut SessionState,
        new_tools: &[&ToolSpec],
    ) -> Result<(), Failure> {
        let environment = environment_part(&state.transcript, &self.environment_facts(), "");
        let parts: Vec<ContentPart> = new_tools_part(new_tools).into_iter().chain(environment).collect();
        if parts.is_empty() {
            return Ok(());
        }
        let id = state.transcript.next_message_id();
        self.append_entry(state, TranscriptEntry::Prompt(Prompt { id, parts })).await
    }
}

/// Returns a part about tools that were not in the first request.
fn new_tools_part(tools: &[&ToolSpec]) -> Option<ContentPart> {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
    let text = format!("These tools were added: {}.", names.join(", "));
    (!names.is_empty()).then_some(ContentPart::FromCrow { kind: CrowPart::NewTools, text })
}
