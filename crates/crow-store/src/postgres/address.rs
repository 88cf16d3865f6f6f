//! The address of a server with credentials. Shown without the password.

use std::{fmt, str::FromStr, sync::Arc};

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use super::lost_connections::LostConnections;
use crate::StoreError;

/// The address of a database on a server.
#[derive(Clone)]
pub struct PostgresAddress {
    uri: String,
    redacted: String,
    /// The connections to it that were lost.
    pub(super) lost: Arc<LostConnections>,
}

impl PartialEq for PostgresAddress {
    fn eq(&self, other: &Self) -> bool {
        self.uri == other.uri
    }
}

impl Eq for PostgresAddress {}

impl PostgresAddress {
    /// Parses `postgres://USER:PASSWORD@HOST:PORT/NAME`, with the options of libpq after a question mark and, after
    /// the scheme, an optional driver name that other programs write. Errors do not contain the password.
    pub fn parse(uri: &str) -> Result<Self, String> {
        let (_, rest) = uri.split_once("://").ok_or("expected postgres://USER@HOST/NAME")?;
        let uri = format!("postgresql://{rest}");
        let config = parse_config(&uri)?;
        let has_at_sign = |host: &Host| matches!(host, Host::Tcp(host) if host.contains('@'));
        if config.get_hosts().iter().any(has_at_sign) {
            return Err("expected postgres://USER@HOST/NAME (an @ in the password is written %40)".into());
        }
        let redacted = format_without_password(&config);
        Ok(Self { uri, redacted, lost: Arc::default() })
    }

    pub(super) fn to_config(&self) -> Result<Config, StoreError> {
        let unusable = |reason| StoreError::CannotOpen { database: self.redacted.clone(), reason };
        parse_config(&self.uri).map_err(unusable)
    }
}

fn parse_config(uri: &str) -> Result<Config, String> {
    Config::from_str(uri).map_err(|error| {
        let reason = std::error::Error::source(&error).map(ToString::to_string);
        format!("expected postgres://USER@HOST/NAME ({})", reason.unwrap_or_else(|| error.to_string()))
    })
}

/// A local socket needs no encryption and supports none.
pub(super) fn wants_tls(config: &Config) -> bool {
    let is_socket = |host: &Host| !matches!(host, Host::Tcp(_));
    config.get_ssl_mode() != SslMode::Disable && !config.get_hosts().iter().all(is_socket)
}

fn format_without_password(config: &Config) -> String {
    let user = config.get_user().map(|user| format!("{user}@")).unwrap_or_default();
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        #[cfg(unix)]
        Some(Host::Unix(directory)) => directory.display().to_string(),
        None => String::new(),
    };
    let port = config.get_ports().first().map(|port| format!(":{port}")).unwrap_or_default();
    format!("postgres://{user}{host}{port}/{}", config.get_dbname().unwrap_or_default())
}

impl fmt::Display for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.redacted)
    }
}

impl fmt::Debug for PostgresAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::PostgresAddress;

    #[track_caller]
    fn check_parse(uri: &str, wanted: &str) {
        let said = match PostgresAddress::parse(uri) {
            Ok(address) => format!("{address:?}"),
            Err(reason) => reason,
        };
        assert_eq!(said, wanted);
        assert!(!said.contains("secret"), "{said}");
    }

    #[test]
    fn password_is_never_shown() {
        check_parse("postgres://u:secret@h:5433/crow", "ServerAddress(postgres://u@h:5433/crow)");
        check_parse("postgresql+asyncpg://u:secret@h/crow", "ServerAddress(postgres://u@h:5432/crow)");
        check_parse(
            "postgres:///crow?host=/run/pg&password=secret",
            "ServerAddress(postgres:///run/pg/crow)",
        );
        check_parse(
            "postgres://u:secret@h:nine/crow",
            "expected postgres://USER@HOST/NAME (invalid value for option `port`)",
        );
        check_parse(
            "postgres://u:p@secret@h/crow",
            "expected postgres://USER@HOST/NAME (an @ in the password is written %40)",
        );
        check_parse("postgres:secret", "expected postgres://USER@HOST/NAME");
    }
}
