//! Changes the settings of a session, by the client's options and by slash commands.

use crow_core::{
    Failure, FailureKind, Mode, SessionCommand, SessionConfigOptions, SessionUpdate, ThoughtLevel,
    Transcript, mode_list, to_sentence,
};
use crow_project::RenderedPrompt;
use crow_store::StoreError;

use crate::failures::store_failure;
use crate::pending_session::{has_core_tools, render_prompt_blocking};
use crate::session::{DriverState, SessionDriver};
use crate::turn_context::StoredState;

impl SessionDriver {
    /// Runs a command and returns its answer.
    pub(super) async fn run_command(&mut self, command: &SessionCommand<'_>) -> String {
        let settings = self.settings.borrow().clone();
        let result = match command {
            SessionCommand::Help => {
                return crow_core::render_help(self.config_loader.available_commands().await);
            }
            SessionCommand::Stop => {
                self.on_cancel();
                return "Stopped.\n".into();
            }
            SessionCommand::Sessions => {
                return crow_history::render_sessions(&self.runtime.store, &self.location.cwd, &self.id)
                    .await;
            }
            SessionCommand::Tasks => {
                let tasks = self.children.list_tasks().await;
                return tasks.unwrap_or_else(|error| format!("Could not list the tasks: {error}.\n"));
            }
            SessionCommand::Trust(Some(action)) => return self.config_loader.run_trust_action(*action).await,
            SessionCommand::Trust(None) => {
                return "Nothing was changed. Type /trust, /trust yes, /trust session or /trust no.\n".into();
            }
            SessionCommand::Permissions(Some(action)) => {
                return self.grants.run_permissions_action(*action, &self.location.cwd).await;
            }
            SessionCommand::Permissions(None) => {
                return "Nothing was changed. Type /permissions, /permissions remove N or /permissions clear.\n"
                    .into();
            }
            SessionCommand::Undo(None) => {
                return "Nothing was undone. Type /undo, /undo N, /undo --dry-run or /undo skip.\n".into();
            }
            // An idle session handles it as a turn.
            SessionCommand::Undo(Some(_)) => {
                return "A turn is running. Stop it with /stop, then undo its changes.\n".into();
            }
            SessionCommand::Mode("") => {
                return format!("The mode is {}. The modes are {}.\n", settings.mode.as_str(), mode_list());
            }
            SessionCommand::Model("") => {
                let options = self.current_options();
                let current = options.model.unwrap_or_else(|| "not set".into());
                let names: Vec<_> = options.models.iter().map(|model| model.name.as_str()).collect();
                return format!("The model is {current}. Configured: {}.\n", names.join(", "));
            }
            SessionCommand::Mode(value) => self.set_option("mode", value).await,
            SessionCommand::Model(value) => self.set_option("model", value).await,
        };
        match result {
            Ok(options) => {
                let model = options.model.unwrap_or_else(|| "not set".into());
                format!("Mode {}, model {model}.\n", options.mode.as_str())
            }
            Err(failure) => format!("{}\n", to_sentence(&failure.message)),
        }
    }

    /// Replaces the system prompt by that of the session's model, as long as the conversation has not begun.
    async fn adapt_system_prompt(&mut self) -> Result<(), Failure> {
        let DriverState::Idle(state) = &mut self.state else { return Ok(()) };
        if !matches!(state.stored_state, StoredState::Current) || state.transcript.next_seq() > 0 {
            return Ok(());
        }
        let has_core_tools = has_core_tools(&self.runtime, self.settings.borrow().model.as_deref());
        let (location, store) = (self.location.clone(), &self.runtime.store);
        let RenderedPrompt { text, template } =
            render_prompt_blocking(&self.runtime, &self.id, location, has_core_tools).await?;
        if text != state.transcript.system() {
            store.set_system_prompt(&self.id, text.clone()).await.map_err(store_failure)?;
            store.set_prompt_template(&self.id, template).await.map_err(store_failure)?;
            state.transcript = Transcript::new(text);
        }
        Ok(())
    }

    /// Changes an option, first in the store, and notifies the client.
    pub(super) async fn set_option(
        &mut self,
        option: &str,
        value: &str,
    ) -> Result<SessionConfigOptions, Failure> {
        let invalid = |reason: String| Failure::new(FailureKind::InvalidValue, reason);
        self.wait_until_stored().await;
        let mut adapted = Ok(());
        match option {
            "mode" => {
                let mode = Mode::parse(value).ok_or_else(|| {
                    invalid(format!("there is no mode {value}; the modes are: {}", mode_list()))
                })?;
                ignore_missing_session(self.runtime.store.set_mode(&self.id, mode).await)?;
                self.settings.send_modify(|settings| settings.mode = mode);
                self.client.send_update(&self.id, SessionUpdate::Mode(mode));
            }
            "model" => {
                let model = self.runtime.find_model(Some(value))?.name;
                ignore_missing_session(self.runtime.store.set_model(&self.id, &model).await)?;
                self.settings.send_modify(|settings| settings.model = Some(model));
                adapted = self.adapt_system_prompt().await;
            }
            "thought_level" => {
                let level = ThoughtLevel::parse(value).ok_or_else(|| {
                    let levels = ThoughtLevel::ALL.map(ThoughtLevel::as_str).join(", ");
                    invalid(format!("there is no thought level {value}; the levels are: {levels}"))
                })?;
                ignore_missing_session(self.runtime.store.set_thought_level(&self.id, level).await)?;
                self.settings.send_modify(|settings| settings.thought_level = level);
            }
            _ => {
                let reason =
                    format!("there is no option {option}; the options are: mode, model, thought_level");
                return Err(invalid(reason));
            }
        }
        let options = self.current_options();
        self.client.send_update(&self.id, SessionUpdate::Options(options.clone()));
        // The model has changed even if its system prompt could not be rendered.
        adapted.map(|()| options)
    }
}

/// A session that is not stored yet has no row; its first prompt stores its settings.
fn ignore_missing_session(changed: Result<(), StoreError>) -> Result<(), Failure> {
    match changed {
        Ok(()) | Err(StoreError::NoSession(_)) => Ok(()),
        Err(error) => Err(store_failure(error)),
    }
}
