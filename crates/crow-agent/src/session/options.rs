//! What a session stands at and how it is changed: by the client's options and by slash commands alike.

use crow_core::{Failure, FailureKind, Mode, Options, ThoughtLevel, Update};
use crow_store::StoreError;

use crate::commands::{self, Command};
use crate::run_turn::store_failure;
use crate::session::{Session, listing};

impl Session {
    /// Does what a command says and gives the words to answer with.
    pub(super) async fn run_command(&mut self, command: &Command<'_>) -> String {
        let standing = self.standing.borrow().clone();
        let result = match command {
            Command::Help => return commands::help(self.stock.commands().await),
            Command::Stop => {
                self.on_cancel();
                return "Stopped.\n".into();
            }
            Command::Sessions => {
                return listing::list(&self.kit.store, &self.place.cwd, &self.id).await;
            }
            Command::Tasks => {
                let listed = self.children.listed().await;
                return listed.unwrap_or_else(|error| format!("Could not list the tasks: {error}.\n"));
            }
            Command::Trust(Some(order)) => return self.stock.trust(*order).await,
            Command::Trust(None) => {
                return "Nothing was changed: write /trust, /trust yes, /trust session or /trust no.\n"
                    .into();
            }
            Command::Permissions(Some(order)) => {
                return self.children.approvals().order(*order, &self.place.cwd).await;
            }
            Command::Permissions(None) => {
                return "Nothing was changed: write /permissions, /permissions remove N or /permissions clear.\n"
                    .into();
            }
            Command::Undo(None) => {
                return "Nothing was undone: write /undo, /undo --dry-run or /undo skip.\n".into();
            }
            // An idle session makes a turn of it.
            Command::Undo(Some(_)) => {
                return "A turn runs. Stop it first, with /stop, then undo what it did.\n".into();
            }
            Command::Mode("") => {
                return format!("The mode is {}. There are {}.\n", standing.mode.as_str(), commands::modes());
            }
            Command::Model("") => {
                let options = self.options();
                let current = options.model.unwrap_or_else(|| "not set".into());
                let names: Vec<_> = options.models.iter().map(|model| model.name.as_str()).collect();
                return format!("The model is {current}. Configured: {}.\n", names.join(", "));
            }
            Command::Mode(value) => self.set_option("mode", value).await,
            Command::Model(value) => self.set_option("model", value).await,
        };
        match result {
            Ok(options) => {
                let model = options.model.unwrap_or_else(|| "not set".into());
                format!("Mode {}, model {model}.\n", options.mode.as_str())
            }
            Err(failure) => format!("{failure}\n"),
        }
    }

    /// Changes an option, on disk first, and tells the client.
    pub(super) async fn set_option(&mut self, option: &str, value: &str) -> Result<Options, Failure> {
        let invalid = |why: String| Failure::new(FailureKind::InvalidValue, why);
        self.arrive().await;
        match option {
            "mode" => {
                let mode = Mode::parse(value).ok_or_else(|| {
                    invalid(format!("There is no mode {value}. Modes: {}.", commands::modes()))
                })?;
                known(self.kit.store.set_mode(&self.id, mode).await)?;
                self.standing.send_modify(|standing| standing.mode = mode);
                self.client.tell(&self.id, Update::Mode(mode));
            }
            "model" => {
                let model = self.kit.model(Some(value))?.name;
                known(self.kit.store.set_model(&self.id, &model).await)?;
                self.standing.send_modify(|standing| standing.model = Some(model));
            }
            "thought_level" => {
                let level = ThoughtLevel::parse(value).ok_or_else(|| {
                    let levels = ThoughtLevel::ALL.map(ThoughtLevel::as_str).join(", ");
                    invalid(format!("There is no thought level {value}. Levels: {levels}."))
                })?;
                known(self.kit.store.set_thought_level(&self.id, level).await)?;
                self.standing.send_modify(|standing| standing.thought_level = level);
            }
            _ => {
                let why = format!("There is no option {option}. Options: mode, model, thought_level.");
                return Err(invalid(why));
            }
        }
        let options = self.options();
        self.client.tell(&self.id, Update::Options(options.clone()));
        Ok(options)
    }
}

/// A session that could not be stored yet has no row; its first prompt stores what it stands at.
fn known(changed: Result<(), StoreError>) -> Result<(), Failure> {
    match changed {
        Ok(()) | Err(StoreError::NoSession(_)) => Ok(()),
        Err(error) => Err(store_failure(error)),
    }
}
