//! `crow-cli models`: lists the configured models, or those of their providers.

mod available;

use std::io::Write;

use serde_json::json;

pub(crate) use self::available::list_available_models;
use crate::{cli::ModelsArgs, failure::CliError, settings::Settings, table};

/// Lists the configured models, the default first.
pub(crate) fn run(args: &ModelsArgs, settings: &Settings, out: &mut impl Write) -> Result<(), CliError> {
    let default = settings.find_model(None)?.name.as_str();
    if args.json {
        let models = settings.models.iter().map(|model| {
            json!({
                "name": model.name,
                "default": model.name == default,
                "provider": model.provider.name,
                "model": model.model,
                "context_window": model.context_window,
                "max_tokens": model.max_tokens,
                "images": model.reads_images,
                "fallbacks": model.fallbacks,
                "has_key": model.provider.api_key.is_some(),
            })
        });
        return Ok(writeln!(out, "{}", json!({ "models": models.collect::<Vec<_>>() }))?);
    }
    let header = ["NAME", "PROVIDER", "MODEL", "WINDOW", ""].map(str::to_owned);
    let rows = settings.models.iter().map(|model| {
        let mark = if model.name == default { "default" } else { "" };
        let key = match (&model.provider.api_key, &model.provider.key_variable) {
            (None, Some(variable)) => format!("{variable} is not set"),
            (Some(_), _) | (None, None) => String::new(),
        };
        let notes = [mark, &key].into_iter().filter(|note| !note.is_empty()).collect::<Vec<_>>().join(", ");
        [
            model.name.clone(),
            model.provider.name.clone(),
            model.model.clone(),
            model.context_window.to_string(),
            notes,
        ]
    });
    table::write_table(out, std::iter::once(header).chain(rows))?;
    Ok(())
}
