//! The model servers that `init` talks to.

use std::time::Duration;

use crow_core::Failure;
use crow_model::{HttpClients, ModelListing, ModelSettings, ProviderSettings, list_models};

use super::{
    local_servers::LocalModelServer,
    trial::{self, TrialOutcome},
};

/// Requests to model servers.
pub(crate) trait ModelServers {
    /// Lists the models of a provider.
    async fn list(&self, provider: ProviderSettings, timeout: Duration) -> Result<ModelListing, Failure>;

    /// Asks a model to call a tool.
    async fn try_model(&self, model: &ModelSettings) -> Result<TrialOutcome, Failure>;
}

/// The real servers.
pub(crate) struct RemoteModelServers;

impl ModelServers for RemoteModelServers {
    async fn list(&self, provider: ProviderSettings, timeout: Duration) -> Result<ModelListing, Failure> {
        list_models(&HttpClients::new()?, &provider, timeout).await
    }

    async fn try_model(&self, model: &ModelSettings) -> Result<TrialOutcome, Failure> {
        trial::try_model(&HttpClients::new()?, model).await
    }
}

/// The parts of the outside world that `init` uses.
pub(crate) struct InitContext<'a, Servers> {
    pub(crate) models: &'a Servers,
    /// The local servers to look for.
    pub(crate) servers: &'a [LocalModelServer],
}
