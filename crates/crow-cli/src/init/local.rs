//! Servers of models on this machine, on the ports they usually have. Asks nobody else.

use std::time::Duration;

use crow_core::{Failure, FailureKind};
use crow_model::{ModelListing, ProviderSettings};
use futures_util::future::join_all;

use super::found::ProviderChoice;

/// What is on this machine answers at once, or is not worth the wait of those who have no such server.
const LOOK_WAIT: Duration = Duration::from_secs(2);

/// A port of this machine and the server that usually has it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalModelServer {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) port: u16,
}

/// Where servers are that nobody has moved.
pub(crate) const USUAL_PLACES: [LocalModelServer; 4] = [
    LocalModelServer { name: "ollama", title: "Ollama", port: 11434 },
    LocalModelServer { name: "lmstudio", title: "LM Studio", port: 1234 },
    LocalModelServer { name: "llamacpp", title: "llama.cpp", port: 8080 },
    LocalModelServer { name: "vllm", title: "vLLM", port: 8000 },
];

/// What a look at this machine found.
#[derive(Default)]
pub(super) struct LocalScan {
    /// The servers that have models, with those.
    pub(super) found: Vec<(ProviderChoice, ModelListing)>,
    /// What there is to say of all places.
    pub(super) notes: Vec<String>,
}

/// Looks at all places at once, except for those that are known already.
pub(super) async fn scan_local_servers(
    places: &[LocalModelServer],
    known: &[ProviderChoice],
    list: &impl AsyncFn(ProviderSettings, Duration) -> Result<ModelListing, Failure>,
) -> LocalScan {
    let is_known =
        |place: &&LocalModelServer| known.iter().any(|provider| place.matches_url(&provider.base_url));
    let places: Vec<&LocalModelServer> = places.iter().filter(|place| !is_known(place)).collect();
    let answers =
        join_all(places.iter().map(|place| list(place.to_provider().to_settings(), LOOK_WAIT))).await;
    let (mut look, mut silent) = (LocalScan::default(), Vec::new());
    for (place, answer) in places.into_iter().zip(answers) {
        let url = place.base_url();
        match answer {
            Ok(listing) if listing.models.is_empty() => {
                let title = server_title(place, &listing);
                look.notes.push(format!("{title} is at {url} and has no model yet"));
            }
            Ok(listing) => {
                let (title, n) = (server_title(place, &listing), listing.models.len());
                let plural = if n == 1 { "" } else { "s" };
                look.notes.push(format!("{title} is at {url} and has {n} model{plural}"));
                let taken: Vec<&ProviderChoice> =
                    known.iter().chain(look.found.iter().map(|(found, _)| found)).collect();
                let mut provider = place.to_provider();
                if taken.iter().any(|other| other.name == provider.name) {
                    provider.name = format!("{}-{}", place.name, place.port);
                }
                look.found.push((provider, listing));
            }
            Err(failure) if failure.kind == FailureKind::Connection => {
                silent.push(format!("{} ({})", place.title, place.port));
            }
            Err(failure) if failure.kind == FailureKind::ProviderAuth => look.notes.push(format!(
                "the server at {url} wants a key; LLM_LOCAL_BASE_URL and LLM_LOCAL_API_KEY name both"
            )),
            Err(_) => look.notes.push(format!("what answers at {url} is no server of models")),
        }
    }
    if !silent.is_empty() {
        look.notes.push(format!("not found on this machine: {}", silent.join(", ")));
    }
    look
}

fn server_title(place: &LocalModelServer, listing: &ModelListing) -> &'static str {
    listing.server.map_or(place.title, crow_model::ModelServerKind::as_str)
}

impl LocalModelServer {
    fn base_url(self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    fn to_provider(self) -> ProviderChoice {
        ProviderChoice {
            name: self.name.to_owned(),
            base_url: self.base_url(),
            key: None,
            models: Vec::new(),
        }
    }

    fn matches_url(self, url: &str) -> bool {
        let authority = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| authority == format!("{host}:{}", self.port))
    }
}
