//! `crow-cli auth`: shows which keys are set and runs the setup if nothing is configured. Never prints a key.

use std::io::{self, IsTerminal, Write};

use crate::{
    failure::{CliError, CliExitCode},
    settings::Settings,
    sign_in, table,
};

/// The result of checking the configured keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuthStatus {
    /// A model is configured; its provider was not contacted.
    Ready,
    /// Nothing is configured, and there is a terminal to run the setup in.
    NeedsSetup,
}

/// Prints for each provider in use whether its key is set.
pub(crate) fn run(settings: &Settings, out: &mut impl Write) -> Result<AuthStatus, CliError> {
    if settings.models.is_empty() {
        if io::stdin().is_terminal() && io::stderr().is_terminal() {
            return Ok(AuthStatus::NeedsSetup);
        }
        settings.find_model(None)?;
    }
    let mut providers: Vec<_> = settings.models.iter().map(|model| &model.provider).collect();
    providers.sort_by(|a, b| a.name.cmp(&b.name));
    providers.dedup_by(|a, b| a.name == b.name);
    let header = ["PROVIDER", "ADDRESS", "KEY"].map(str::to_owned);
    let rows = providers.iter().map(|provider| {
        let key = match (&provider.api_key, &provider.key_variable) {
            (Some(_), Some(variable)) => format!("from {variable}"),
            (Some(_), None) => "in the configuration".to_owned(),
            (None, Some(variable)) => format!("missing: {variable} is not set"),
            (None, None) => "not required".to_owned(),
        };
        [provider.name.clone(), provider.display_address(), key]
    });
    table::write_table(out, std::iter::once(header).chain(rows))?;
    sign_in::list_sign_ins(settings, out)?;
    let default = &settings.find_model(None)?.provider;
    match (&default.api_key, &default.key_variable) {
        (None, Some(variable)) => {
            let message = format!("the default model has no key: {variable} is not set");
            let hint =
                format!("set {variable} in {}", settings.dir.join(crate::settings::ENV_FILE).display());
            Err(CliError::new(CliExitCode::Config, message).with_hint(hint))
        }
        (Some(_), _) | (None, None) => Ok(AuthStatus::Ready),
    }
}
