//! Logging in to servers that require authentication: once in a browser, then with the stored tokens.
//!
//! Tokens are bound to the server's address and are only sent there and to its authorization server.

mod callback;
mod http_client;
mod store;

use std::{path::Path, sync::Arc, time::Duration};

use crow_core::McpServer;
use reqwest::Url;
use rmcp::transport::auth::{AuthError, AuthorizationManager, OAuthClientConfig};
use tokio::{net::TcpListener, time::timeout};

pub(super) use self::store::{is_already_refreshed, token_value};
use self::{
    callback::{OAuthCallback, wait_for_callback},
    http_client::SignInHttpClient,
    store::{ClientSecret, TokenFile},
};
use super::http::{is_loopback, parse_url};
use crate::title::to_title;

/// The client name that the user sees on the login page.
const CLIENT_NAME: &str = "Crow";

/// Time for a user to log in; then the address expires.
const SIGN_IN_TIMEOUT: Duration = Duration::from_secs(300);

/// Reason why a login failed, as a clause.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SignInError(String);

impl From<String> for SignInError {
    fn from(reason: String) -> Self {
        Self(reason)
    }
}

/// State of the login at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignInStatus {
    /// The server is a program, or has a key in its headers.
    NotApplicable,
    /// A login is stored for its address.
    SignedIn,
    /// No login is stored; the server may not require one.
    SignedOut,
}

/// Returns the state of the login at a server, without contacting it.
pub fn sign_in_status(server: &McpServer, dir: &Path) -> Result<SignInStatus, SignInError> {
    let Some(url) = server.transport.url().filter(|_| !server.transport.has_authorization()) else {
        return Ok(SignInStatus::NotApplicable);
    };
    let stored = TokenFile::new(dir, &server.name, url).read();
    let stored = stored.map_err(|error| format!("could not read the stored login: {error}"))?;
    Ok(if stored.is_some() { SignInStatus::SignedIn } else { SignInStatus::SignedOut })
}

/// Deletes a server's login; returns whether there was one.
pub fn forget_sign_in(server: &str, dir: &Path) -> Result<bool, SignInError> {
    let removed = TokenFile::new(dir, server, "").remove();
    removed.map_err(|error| SignInError(format!("could not delete the stored login: {error}")))
}

/// A login that waits for the user.
pub struct McpSignIn {
    manager: AuthorizationManager,
    listener: TcpListener,
    authorization_url: String,
    state: String,
}

impl std::fmt::Debug for McpSignIn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("McpSignIn")
    }
}

impl McpSignIn {
    /// Discovers the server's authorization endpoint and registers Crow there.
    pub async fn start(server: &McpServer, dir: &Path) -> Result<Self, SignInError> {
        let url = server.transport.url().ok_or("it is a program, which needs no login".to_owned())?;
        if server.transport.has_authorization() {
            return Err(SignInError("its headers already have an `Authorization`".to_owned()));
        }
        let file = TokenFile::new(dir, &server.name, url);
        let mut manager = create_auth_manager(url).await?;
        let resolved = manager.resolve_metadata().await.map_err(|error| describe_auth_error(&error))?;
        let is_discovered = resolved.source.is_discovered();
        manager.set_metadata(resolved.metadata);
        let listener_error = |error: std::io::Error| format!("could not wait for the browser: {error}");
        let listener = TcpListener::bind("127.0.0.1:0").await.map_err(listener_error)?;
        let port = listener.local_addr().map_err(listener_error)?.port();
        let redirect_url = format!("http://127.0.0.1:{port}{}", callback::PATH);
        let scopes = manager.select_initial_scopes(&[]).await;
        let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
        let registered = manager.register_client(CLIENT_NAME, &redirect_url, &scopes).await;
        let client = registered.map_err(|error| match is_discovered {
            true => describe_auth_error(&error),
            false => "it does not give an authorization server".to_owned(),
        })?;
        manager.set_credential_store(file.into_store(ClientSecret(client.client_secret)));
        let authorization_url =
            manager.get_authorization_url(&scopes).await.map_err(|error| describe_auth_error(&error))?;
        // A browser opens more than web pages, so only http(s) addresses are passed to it.
        let parsed_url = parse_secure_url(&authorization_url)
            .map_err(|_| "its login page is not a safe web address".to_owned())?;
        let state =
            parsed_url.query_pairs().find(|(name, _)| name == "state").map(|(_, state)| state.into_owned());
        let state = state.ok_or("the address of its login page has no state".to_owned())?;
        Ok(Self { manager, listener, authorization_url, state })
    }

    /// The address to open in a browser, valid for one login.
    pub fn authorization_url(&self) -> &str {
        &self.authorization_url
    }

    /// Waits for the user for some minutes at most, and stores the login.
    pub async fn finish(self) -> Result<(), SignInError> {
        let minutes = SIGN_IN_TIMEOUT.as_secs() / 60;
        let callback_result = timeout(SIGN_IN_TIMEOUT, wait_for_callback(&self.listener, &self.state)).await;
        let callback_result = callback_result.map_err(|_| format!("no login within {minutes} minutes"))??;
        let OAuthCallback { code, issuer } = callback_result;
        let exchanged =
            self.manager.exchange_code_for_token_with_issuer(&code, &self.state, issuer.as_deref()).await;
        exchanged.map(drop).map_err(|error| SignInError(describe_auth_error(&error)))
    }
}

/// Returns the manager of a server's stored login.
pub(super) async fn load_auth_manager(
    server: &McpServer,
    dir: &Path,
) -> Result<Option<AuthorizationManager>, String> {
    let Some(url) = server.transport.url().filter(|_| !server.transport.has_authorization()) else {
        return Ok(None);
    };
    let file = TokenFile::new(dir, &server.name, url);
    let Some(stored) = file.load_stored().await? else { return Ok(None) };
    let secret = stored.secret.clone();
    let mut manager = create_auth_manager(url).await?;
    manager.set_credential_store(file.into_store(stored.secret));
    let client = stored.credentials.client_id.clone();
    // Discovers the authorization server again: tokens of another one are dropped.
    match manager.initialize_from_store().await {
        Ok(true) => {}
        Ok(false) => return Ok(None),
        Err(error) => return Err(describe_auth_error(&error)),
    }
    if let ClientSecret(Some(secret)) = secret {
        let config = OAuthClientConfig::new(client, url).with_client_secret(secret);
        manager.configure_client(config).map_err(|error| describe_auth_error(&error))?;
    }
    Ok(Some(manager))
}

async fn create_auth_manager(url: &str) -> Result<AuthorizationManager, String> {
    let url = parse_secure_url(url)?;
    let web = SignInHttpClient::for_server(&url).await?;
    let manager = AuthorizationManager::new_with_oauth_http_client(url, Arc::new(web)).await;
    manager.map_err(|error| describe_auth_error(&error))
}

/// Parses an address that a key may be sent to: encrypted, or on this machine.
fn parse_secure_url(url: &str) -> Result<Url, String> {
    let url = parse_url(url)?;
    if url.scheme() == "https" || is_loopback(&url) {
        return Ok(url);
    }
    Err(format!("its address {} is not https", url.host_str().unwrap_or_default()))
}

/// Describes an error in one line, without addresses and keys.
pub(super) fn describe_auth_error(error: &AuthError) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "the SDK may add to its errors")]
    match error {
        AuthError::DiscoveryRequestFailed { source, .. } => {
            format!("could not request its authorization server: {}", to_title(&source.to_string()))
        }
        AuthError::PkceUnsupported => "its authorization server does not support PKCE with S256".to_owned(),
        AuthError::AuthorizationServerMismatch { .. } => {
            "the response came from another authorization server".to_owned()
        }
        other => to_title(&other.to_string()),
    }
}
