//! The access token of the requests to a server. A refresh is completed even if its request is not: many authorization
//! servers accept a refresh token once, and the login is lost if the next one is not stored.

use std::sync::Arc;

use rmcp::transport::auth::{AuthError, AuthorizationManager};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::auth::{is_already_refreshed, token_value};
use crate::token_refreshes::TokenRefreshTasks;

/// Authorizes the requests to a server. Clones share the token.
#[derive(Clone)]
pub(super) struct RequestAuthorizer {
    manager: Arc<Mutex<AuthorizationManager>>,
    refreshes: TokenRefreshTasks,
}

/// The exclusive use of a server's login.
type LockedManager = OwnedMutexGuard<AuthorizationManager>;

/// An access token; `None` if the user has to log in again.
type TokenResult = Result<Option<String>, AuthError>;

impl RequestAuthorizer {
    pub(super) fn new(manager: AuthorizationManager, refreshes: TokenRefreshTasks) -> Self {
        Self { manager: Arc::new(Mutex::new(manager)), refreshes }
    }

    /// Returns the token for a request, refreshed if it expires soon.
    pub(super) async fn fetch_token(&self) -> TokenResult {
        self.run_to_end(read_token).await
    }

    /// Returns another token than the one that the server rejected.
    pub(super) async fn replace_token(&self, rejected: String) -> TokenResult {
        self.run_to_end(|manager| replace_token(manager, rejected)).await
    }

    /// Runs work that may refresh the token, even if the caller stops waiting for it.
    async fn run_to_end<F>(&self, work: impl FnOnce(LockedManager) -> F) -> TokenResult
    where
        F: Future<Output = TokenResult> + Send + 'static,
    {
        let manager = self.manager.clone().lock_owned().await;
        let task = self.refreshes.spawn(work(manager));
        task.await.unwrap_or_else(|error| Err(AuthError::InternalError(error.to_string())))
    }
}

async fn read_token(manager: LockedManager) -> TokenResult {
    to_token_result(current_token(&manager).await)
}

/// Returns the stored token, refreshed if it expires soon and no other process does it.
async fn current_token(manager: &AuthorizationManager) -> Result<String, AuthError> {
    match manager.get_access_token().await {
        Err(error) if is_already_refreshed(&error) => manager.get_access_token().await,
        result => result,
    }
}

async fn replace_token(manager: LockedManager, rejected: String) -> TokenResult {
    // Another request or process may have replaced it already.
    match to_token_result(current_token(&manager).await)? {
        Some(current) if current == rejected => {}
        current => return Ok(current),
    }
    let refreshed = match manager.refresh_token().await {
        Ok(tokens) => Ok(token_value(&tokens, "access_token")),
        Err(error) if is_already_refreshed(&error) => manager.get_access_token().await.map(Some),
        Err(error) => Err(error),
    };
    Ok(to_token_result(refreshed)?.flatten().filter(|token| *token != rejected))
}

/// Separates the need to log in from other failures.
fn to_token_result<T>(result: Result<T, AuthError>) -> Result<Option<T>, AuthError> {
    match result {
        Ok(token) => Ok(Some(token)),
        Err(AuthError::AuthorizationRequired | AuthError::TokenRefreshRejected(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
