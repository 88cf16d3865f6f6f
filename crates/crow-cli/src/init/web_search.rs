//! The search service that `init` sets up: a SearXNG in Docker, reachable from this machine only.

use std::{fmt::Write, fs::File, io, path::Path};

use crow_tools::WebConfig;

use crate::{
    config,
    failure::{CliError, CliExitCode},
    settings::{Environment, SEARCH_COMPOSE, SEARCH_VARIABLE},
};

const SEARCH_DIR: &str = "searxng";
const SETTINGS_FILE: &str = "settings.yml";

/// The length that SearXNG's own tools use.
const SECRET_BYTES: usize = 32;

/// The search service to use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SearchChoice {
    /// A new SearXNG in Docker, for which files are written.
    Docker,
    /// A SearXNG that already runs at this address.
    Url(String),
    Disabled,
}

/// Handling of existing files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExistingFiles {
    Keep,
    Replace,
}

impl SearchChoice {
    /// Returns the service from the environment, or else none.
    pub(super) fn from_environment(env: &Environment) -> Self {
        let url = env.get(SEARCH_VARIABLE).map(|url| url.trim()).filter(|url| !url.is_empty());
        url.map_or(Self::Disabled, |url| Self::Url(url.to_owned()))
    }

    /// Returns the address to store, unless it is the default or already stored.
    pub(super) fn url_to_store(&self, env: &Environment) -> Option<String> {
        match self {
            Self::Url(url) => Some(url.clone()),
            Self::Docker if matches!(Self::from_environment(env), Self::Url(_)) => {
                Some(WebConfig::default().search_url)
            }
            Self::Docker | Self::Disabled => None,
        }
    }

    pub(super) fn label(&self) -> &str {
        match self {
            Self::Docker => "a new SearXNG in Docker",
            Self::Url(url) => url,
            Self::Disabled => "none",
        }
    }
}

/// Writes the files of a new SearXNG; returns whether any was written.
pub(super) fn write_search_files(dir: &Path, existing: ExistingFiles) -> Result<bool, CliError> {
    let directory = dir.join(SEARCH_DIR);
    let failed = |error: io::Error| {
        CliError::new(CliExitCode::Failed, format!("could not write {}: {error}", directory.display()))
    };
    let mut has_written = false;
    crow_files::create_private_dir(&directory).map_err(failed)?;
    for (name, text) in [
        (SETTINGS_FILE, render_settings(&generate_secret().map_err(failed)?)),
        (compose_file_name(), COMPOSE.to_owned()),
    ] {
        if existing == ExistingFiles::Keep && directory.join(name).exists() {
            continue;
        }
        config::write_atomically(&directory, name, &text).map_err(failed)?;
        make_readable(&directory.join(name)).map_err(failed)?;
        has_written = true;
    }
    Ok(has_written)
}

/// Returns the command that starts the service.
pub(super) fn start_command(dir: &Path) -> String {
    format!("docker compose -f {} up -d", dir.join(SEARCH_COMPOSE).display())
}

/// Whether a compose file exists.
pub(super) fn has_compose_file(dir: &Path) -> bool {
    dir.join(SEARCH_COMPOSE).exists()
}

fn compose_file_name() -> &'static str {
    SEARCH_COMPOSE.trim_start_matches(SEARCH_DIR).trim_start_matches('/')
}

/// The service's own user has to read the files; other users are kept out by the directory's permissions.
fn make_readable(path: &Path) -> io::Result<()> {
    crow_files::make_public(&File::open(path)?)
}

const COMPOSE: &str = r#"# Web search for Crow: a SearXNG that is reachable from this machine only.
name: crow-searxng
services:
  searxng:
    image: docker.io/searxng/searxng:latest
    restart: unless-stopped
    ports:
      - "127.0.0.1:2946:8080"
    volumes:
      - ./settings.yml:/etc/searxng/settings.yml:ro
      - cache:/var/cache/searxng
volumes:
  cache:
"#;

/// Renders the service's settings: JSON results, and no rate limit, since there is one user.
fn render_settings(secret: &str) -> String {
    format!(
        r#"use_default_settings: true
general:
  instance_name: "Crow"
server:
  secret_key: "{secret}"
  limiter: false
  image_proxy: false
search:
  formats:
    - html
    - json
"#
    )
}

fn generate_secret() -> io::Result<String> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    let mut secret = String::new();
    for byte in bytes {
        let _ = write!(secret, "{byte:02x}");
    }
    Ok(secret)
}

#[cfg(test)]
mod tests;
