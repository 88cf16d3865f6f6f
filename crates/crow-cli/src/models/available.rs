//! `crow-cli models --available`: queries all configured providers in parallel; each may fail on its own.

use std::io::Write;

use crow_core::Failure;
use crow_model::{HttpClients, ListedModel, ModelListing, ModelPrice, ProviderSettings, list_models};
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::{
    cli::ModelsArgs,
    failure::{CliError, CliExitCode},
    providers::{self, LIST_WAIT},
    settings::Settings,
    table,
};

/// The model list of a provider.
struct ProviderModels<'a> {
    provider: &'a ProviderSettings,
    settings: &'a Settings,
    listing: Result<ModelListing, Failure>,
}

/// Lists the models of the configured providers. Fails if none of them answered.
pub(crate) async fn list_available_models(
    args: &ModelsArgs,
    settings: &Settings,
    out: &mut impl Write,
    stderr: &mut impl Write,
) -> Result<(), CliError> {
    // Fails with a hint if no model is configured.
    settings.find_model(None)?;
    let http = HttpClients::new().map_err(|failure| CliError::new(CliExitCode::Failed, failure.message))?;
    let query = async |provider| {
        let listing = list_models(&http, provider, LIST_WAIT).await;
        ProviderModels { provider, settings, listing }
    };
    let answers = join_all(providers::configured_providers(settings).into_iter().map(query)).await;
    if args.json {
        let document =
            json!({ "providers": answers.iter().map(ProviderModels::to_json).collect::<Vec<_>>() });
        writeln!(out, "{}", table::json_line(&document))?;
    } else {
        let header = ["PROVIDER", "MODEL", "WINDOW", "USD/M IN", "OUT", ""].map(str::to_owned);
        table::write_table(
            out,
            std::iter::once(header).chain(answers.iter().flat_map(ProviderModels::table_rows)),
        )?;
        out.flush()?;
        for failure in answers.iter().filter_map(|answer| answer.listing.as_ref().err()) {
            writeln!(stderr, "warning: {}", table::sanitize_line(&failure.message))?;
        }
    }
    if answers.iter().all(|answer| answer.listing.is_err()) {
        return Err(CliError::without_message(CliExitCode::Failed));
    }
    Ok(())
}

impl ProviderModels<'_> {
    fn table_rows(&self) -> Vec<[String; 6]> {
        let Ok(listing) = &self.listing else { return Vec::new() };
        let row = |model: &ListedModel| {
            let window = match (model.window, model.window_max) {
                (Some(window), _) => window.to_string(),
                (None, Some(max)) => format!("up to {max}"),
                (None, None) => String::new(),
            };
            let price = |part: fn(&ModelPrice) -> f64| {
                model.price.as_ref().map_or_else(String::new, |price| part(price).to_string())
            };
            let names = self.configured_names(listing, model);
            let mark =
                if names.is_empty() { String::new() } else { format!("configured as {}", names.join(", ")) };
            let (input, output) = (price(|price| price.input), price(|price| price.output));
            [self.provider.name.clone(), model.id.clone(), window, input, output, mark]
        };
        listing.models.iter().map(row).collect()
    }

    fn to_json(&self) -> Value {
        let name = &self.provider.name;
        let listing = match &self.listing {
            Ok(listing) => listing,
            Err(failure) => {
                let error = json!({ "kind": failure.kind.as_str(), "message": failure.message });
                return json!({ "name": name, "error": error });
            }
        };
        let models = listing.models.iter().map(|model| {
            json!({
                "id": model.id,
                "title": model.title,
                "context_window": model.window,
                "context_window_max": model.window_max,
                "price": model.price.as_ref().map(price_json),
                "chats": model.chats,
                "tools": model.takes_tools,
                "images": model.reads_images,
                "configured": self.configured_names(listing, model),
            })
        });
        let server = listing.server.map(crow_model::ModelServerKind::as_str);
        json!({ "name": name, "server": server, "models": models.collect::<Vec<_>>() })
    }

    /// Returns the names under which a model is configured.
    fn configured_names(&self, listing: &ModelListing, listed: &ListedModel) -> Vec<&str> {
        let mut models: Vec<_> = self.settings.models.iter().collect();
        models.retain(|model| model.provider.name == self.provider.name);
        models.retain(|model| listing.find_model(&model.model).is_some_and(|found| found.id == listed.id));
        models.into_iter().map(|model| model.name.as_str()).collect()
    }
}

fn price_json(price: &ModelPrice) -> Value {
    json!({
        "input": price.input,
        "output": price.output,
        "cached": price.cached,
        "cache_written": price.cache_written,
    })
}
