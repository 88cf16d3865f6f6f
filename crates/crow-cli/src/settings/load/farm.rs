//! The keys of an agent that is a queue at a NATS server.

use std::path::PathBuf;

use crow_core::{AgentTransport, FarmAddress, NatsCredentials, NatsServer};

use super::super::{ConfigError, file::ConfigField};
use super::loader::ConfigLoader;

/// The name of a parent in subjects if none is configured.
const PARENT: &str = "crow";

/// The keys, as far as they are given.
#[derive(Default)]
pub(super) struct FarmFields {
    pub(super) nats: Option<String>,
    pub(super) queue: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) user: Option<String>,
    pub(super) password: Option<String>,
    pub(super) creds_file: Option<PathBuf>,
    pub(super) nkey_file: Option<PathBuf>,
    pub(super) ca_file: Option<PathBuf>,
}

impl FarmFields {
    /// Whether the agent is a queue.
    pub(super) fn is_used(&self) -> bool {
        let Self { nats, queue, parent, user, password, creds_file, nkey_file, ca_file } = self;
        let texts = [nats, queue, parent, user, password].into_iter().any(Option::is_some);
        texts || [creds_file, nkey_file, ca_file].into_iter().any(Option::is_some)
    }
}

impl ConfigLoader<'_> {
    /// Returns the queue; the token is that of the agent.
    pub(super) fn farm_transport(
        &mut self,
        field: &ConfigField,
        fields: FarmFields,
        token: Option<String>,
    ) -> Result<AgentTransport, ConfigError> {
        let key_path = format!("agent_servers.{}", field.key);
        let invalid = |this: &Self, what: &str| this.error_at(field.line, format!("{key_path} {what}"));
        let FarmFields { nats, queue, parent, user, password, creds_file, nkey_file, ca_file } = fields;
        let (Some(urls), Some(queue)) = (nats, queue) else {
            return Err(invalid(self, "needs both nats and queue"));
        };
        if !urls
            .split(',')
            .all(|url| ["nats://", "tls://"].iter().any(|scheme| url.trim().starts_with(scheme)))
        {
            return Err(invalid(self, "needs addresses that start with nats:// or tls:// in nats"));
        }
        let parent_name = parent.unwrap_or_else(|| PARENT.to_owned());
        if ![&queue, &parent_name].into_iter().all(|name| crow_fleet::is_subject_token(name)) {
            let what = "needs a queue and a parent of at most 64 letters, digits, - and _";
            return Err(invalid(self, what));
        }
        let password = match (user, password) {
            (Some(user), Some(password)) => Some(NatsCredentials::Password { user, password }),
            (None, None) => None,
            _ => return Err(invalid(self, "needs both user and password")),
        };
        let token = token.map(|token| NatsCredentials::Token(token.trim().to_owned()));
        let files =
            [creds_file.map(NatsCredentials::CredentialsFile), nkey_file.map(NatsCredentials::NkeyFile)];
        let mut credentials = [password, token].into_iter().chain(files).flatten();
        let first = credentials.next().unwrap_or_default();
        if credentials.next().is_some() {
            return Err(invalid(self, "has several credentials; leave one of them"));
        }
        let is_exposed = ca_file.is_none() && urls.split(',').any(|url| is_unencrypted(url.trim()));
        if is_exposed && first != NatsCredentials::None {
            self.warn_at(
                field.line,
                format!("{key_path}.nats: nothing is encrypted; use tls://, or a tunnel such as `ssh -L`"),
            );
        }
        let server = NatsServer { urls, credentials: first, tls_ca_file: ca_file };
        Ok(AgentTransport::Farm(Box::new(FarmAddress { server, queue, parent_name })))
    }
}

/// Whether an address leads to another machine without encryption.
fn is_unencrypted(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("nats://") else { return false };
    let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
    !["127.", "localhost", "[::1]"].iter().any(|local| host.starts_with(local))
}
