//! Finds model servers on this machine by their default ports. Contacts no other machine.

use std::time::Duration;

use crow_core::FailureKind;
use crow_model::ModelListing;
use futures_util::future::join_all;

use super::{environment_scan::ProviderChoice, model_servers::ModelServers};

/// A local server answers at once; users without one should not wait longer.
const SCAN_TIMEOUT: Duration = Duration::from_secs(2);

/// A model server and its default port.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LocalModelServer {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) port: u16,
}

/// Default ports of the known servers.
pub(crate) const USUAL_SERVERS: [LocalModelServer; 4] = [
    LocalModelServer { name: "ollama", title: "Ollama", port: 11434 },
    LocalModelServer { name: "lmstudio", title: "LM Studio", port: 1234 },
    LocalModelServer { name: "llamacpp", title: "llama.cpp", port: 8080 },
    LocalModelServer { name: "vllm", title: "vLLM", port: 8000 },
];

/// A server that was found on this machine, with its models.
pub(super) struct ScannedServer {
    pub(super) provider: ProviderChoice,
    pub(super) listing: ModelListing,
}

/// The result of a scan.
#[derive(Default)]
pub(super) struct LocalScan {
    /// The servers that have models, with their listings.
    pub(super) servers: Vec<ScannedServer>,
    /// Notes about all scanned ports.
    pub(super) notes: Vec<String>,
}

/// Scans all ports in parallel, except those of configured providers.
pub(super) async fn scan_local_servers(
    servers: &[LocalModelServer],
    configured: &[ProviderChoice],
    models: &impl ModelServers,
) -> LocalScan {
    let is_configured =
        |server: &&LocalModelServer| configured.iter().any(|provider| server.matches_url(&provider.base_url));
    let servers: Vec<&LocalModelServer> = servers.iter().filter(|server| !is_configured(server)).collect();
    let answers =
        join_all(servers.iter().map(|server| models.list(server.to_provider().to_settings(), SCAN_TIMEOUT)))
            .await;
    let (mut scan, mut unreachable) = (LocalScan::default(), Vec::new());
    for (server, answer) in servers.into_iter().zip(answers) {
        let url = server.base_url();
        match answer {
            Ok(listing) if listing.models.is_empty() => {
                let title = server_title(server, &listing);
                scan.notes.push(format!("{title} at {url} has no model yet"));
            }
            Ok(listing) => {
                let (title, n) = (server_title(server, &listing), listing.models.len());
                let plural = if n == 1 { "" } else { "s" };
                scan.notes.push(format!("{title} at {url} has {n} model{plural}"));
                let providers: Vec<&ProviderChoice> =
                    configured.iter().chain(scan.servers.iter().map(|server| &server.provider)).collect();
                let mut provider = server.to_provider();
                if providers.iter().any(|other| other.name == provider.name) {
                    provider.name = format!("{}-{}", server.name, server.port);
                }
                scan.servers.push(ScannedServer { provider, listing });
            }
            Err(failure) if failure.kind == FailureKind::Connection => {
                unreachable.push(format!("{} ({})", server.title, server.port));
            }
            Err(failure) if failure.kind == FailureKind::ProviderAuth => scan.notes.push(format!(
                "the server at {url} requires a key; set LLM_LOCAL_BASE_URL and LLM_LOCAL_API_KEY"
            )),
            Err(_) => scan.notes.push(format!("{url} is not a model server")),
        }
    }
    if !unreachable.is_empty() {
        scan.notes.push(format!("not found on this machine: {}", unreachable.join(", ")));
    }
    scan
}

fn server_title(server: &LocalModelServer, listing: &ModelListing) -> &'static str {
    listing.server.map_or(server.title, crow_model::ModelServerKind::as_str)
}

impl LocalModelServer {
    fn base_url(self) -> String {
        format!("http://127.0.0.1:{}/v1", self.port)
    }

    fn to_provider(self) -> ProviderChoice {
        ProviderChoice::new(self.name.to_owned(), &self.base_url(), None)
    }

    fn matches_url(self, url: &str) -> bool {
        let authority = url.split("://").nth(1).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| authority == format!("{host}:{}", self.port))
    }
}
