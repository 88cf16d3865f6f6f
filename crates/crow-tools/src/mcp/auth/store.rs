//! Stored logins: one private file per server, bound to one address.

use std::{
    fs::{self, File},
    future::Future,
    io::{self, Write as _},
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use crow_files::create_private_dir;
use rmcp::transport::auth::{
    AuthError, CredentialRefreshGuard, CredentialStore, OAuthTokenResponse, StoredCredentials,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::timeout;

/// A token refresh takes less than this; another process must not wait forever.
const LOCK_TIMEOUT: Duration = Duration::from_secs(40);

/// The wait for the lock and half a minute, in which the SDK takes a token for one that expires soon.
const LIFETIME_MIN: Duration = Duration::from_secs(80);

/// Reason why a token is not refreshed: another process has done it. The SDK would refresh it again.
const ALREADY_REFRESHED: &str = "another process has refreshed it";

/// Returns a token of an authorization server's response. The SDK exports no other way to read it.
pub(crate) fn token_value(response: &OAuthTokenResponse, name: &str) -> Option<String> {
    let response = serde_json::to_value(response).ok()?;
    response.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// Whether a refresh was not made because another process has stored a new token.
pub(crate) fn is_already_refreshed(error: &AuthError) -> bool {
    matches!(error, AuthError::CredentialStoreError(reason) if reason == ALREADY_REFRESHED)
}

/// A client secret that some authorization servers issue.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct ClientSecret(pub(super) Option<String>);

/// The content of a login file.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredSignIn {
    url: String,
    #[serde(default)]
    pub(super) secret: ClientSecret,
    pub(super) credentials: StoredCredentials,
}

/// The login file of a server.
#[derive(Clone)]
pub(super) struct TokenFile {
    path: PathBuf,
    url: String,
}

impl TokenFile {
    /// Returns the file of a server at an address.
    pub(super) fn new(dir: &Path, server: &str, url: &str) -> Self {
        Self { path: dir.join(format!("{}.json", file_name(server))), url: url.to_owned() }
    }

    /// Reads the login stored for this address.
    pub(super) fn read(&self) -> io::Result<Option<StoredSignIn>> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // An unreadable file counts as missing: the next login replaces it.
        Ok(serde_json::from_slice::<StoredSignIn>(&bytes).ok().filter(|stored| stored.url == self.url))
    }

    /// Deletes the file, regardless of its address.
    pub(super) fn remove(&self) -> io::Result<bool> {
        match fs::remove_file(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file atomically.
    fn write(&self, stored: &StoredSignIn) -> io::Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        create_private_dir(dir)?;
        // `NamedTempFile` is readable by its owner only.
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(&serde_json::to_vec_pretty(stored)?)?;
        file.as_file().sync_all()?;
        file.persist(&self.path)?;
        Ok(())
    }

    fn lock(&self) -> io::Result<File> {
        create_private_dir(self.path.parent().unwrap_or(Path::new(".")))?;
        let file = File::options().create(true).append(true).open(self.path.with_extension("lock"))?;
        file.lock()?;
        Ok(file)
    }

    /// Reads the login on a blocking thread.
    pub(super) async fn load_stored(&self) -> Result<Option<StoredSignIn>, String> {
        let file = self.clone();
        let read = tokio::task::spawn_blocking(move || file.read()).await;
        let read = read.unwrap_or_else(|error| Err(io::Error::other(error)));
        read.map_err(|error| format!("could not read its stored login: {error}"))
    }

    /// Returns a store that writes logins with this client secret to the file.
    pub(super) fn into_store(self, secret: ClientSecret) -> TokenStore {
        TokenStore { file: self, secret, loaded_token: Mutex::default() }
    }
}

/// Encodes a server's name as a file name, without collisions.
fn file_name(server: &str) -> String {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let encoded = server.bytes().map(|byte| match is_unreserved(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02x}"),
    });
    encoded.collect()
}

fn refresh_token(credentials: &StoredCredentials) -> Option<String> {
    credentials.token_response.as_ref().and_then(|response| token_value(response, "refresh_token"))
}

fn access_token(credentials: &StoredCredentials) -> Option<String> {
    credentials.token_response.as_ref().and_then(|response| token_value(response, "access_token"))
}

/// Whether the SDK uses a token without a refresh that was stored during the wait for the lock.
fn is_usable(credentials: &StoredCredentials) -> bool {
    let response =
        credentials.token_response.as_ref().and_then(|response| serde_json::to_value(response).ok());
    let expires_in = response.as_ref().and_then(|response| response.get("expires_in")?.as_u64());
    expires_in.is_none_or(|seconds| Duration::from_secs(seconds) >= LIFETIME_MIN)
}

/// The file as the SDK's credential store.
pub(super) struct TokenStore {
    file: TokenFile,
    secret: ClientSecret,
    /// The access token that the SDK has read last, and may want to refresh.
    loaded_token: Mutex<Option<String>>,
}

/// The return type of the SDK's async trait methods.
type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send + 'a>>;

impl TokenStore {
    async fn run_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&TokenFile) -> io::Result<T> + Send + 'static,
    ) -> Result<T, AuthError> {
        let file = self.file.clone();
        let result = tokio::task::spawn_blocking(move || work(&file)).await;
        let result = result.unwrap_or_else(|error| Err(io::Error::other(error)));
        result.map_err(|error| AuthError::CredentialStoreError(error.to_string()))
    }
}

impl CredentialStore for TokenStore {
    fn load<'a, 'b>(&'a self) -> StoreFuture<'b, Option<StoredCredentials>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async {
            let credentials = self.run_blocking(TokenFile::read).await?.map(|stored| stored.credentials);
            let token = credentials.as_ref().and_then(access_token);
            *self.loaded_token.lock().unwrap_or_else(PoisonError::into_inner) = token;
            Ok(credentials)
        })
    }

    fn save<'a, 'b>(&'a self, credentials: StoredCredentials) -> StoreFuture<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        let stored = StoredSignIn { url: self.file.url.clone(), secret: self.secret.clone(), credentials };
        Box::pin(self.run_blocking(move |file| file.write(&stored)))
    }

    fn clear<'a, 'b>(&'a self) -> StoreFuture<'b, ()>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async { self.run_blocking(TokenFile::remove).await.map(drop) })
    }

    // A rejected refresh token is useless. Another process may have stored a newer one by a login.
    fn on_refresh_token_rejected<'a, 'b, 'c>(&'a self, rejected: &'b StoredCredentials) -> StoreFuture<'c, ()>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        let rejected = refresh_token(rejected);
        Box::pin(self.run_blocking(move |file| match file.read()? {
            Some(stored) if refresh_token(&stored.credentials) == rejected => file.remove().map(drop),
            Some(_) | None => Ok(()),
        }))
    }

    fn acquire_refresh_guard<'a, 'b>(&'a self) -> StoreFuture<'b, Option<CredentialRefreshGuard>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async {
            let timed_out =
                |_| Err(AuthError::CredentialStoreError("another process is refreshing it".to_owned()));
            let lock =
                timeout(LOCK_TIMEOUT, self.run_blocking(TokenFile::lock)).await.unwrap_or_else(timed_out)?;
            let stored = self.run_blocking(TokenFile::read).await?.map(|stored| stored.credentials);
            let loaded_token = self.loaded_token.lock().unwrap_or_else(PoisonError::into_inner).clone();
            let is_replaced = |credentials: &StoredCredentials| access_token(credentials) != loaded_token;
            match stored.filter(|credentials| is_replaced(credentials) && is_usable(credentials)) {
                Some(_) => Err(AuthError::CredentialStoreError(ALREADY_REFRESHED.to_owned())),
                None => Ok(Some(CredentialRefreshGuard::new(lock))),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{
        ClientSecret, CredentialStore, StoredCredentials, TokenFile, TokenStore, is_already_refreshed,
    };

    fn credentials(token: &str, expires_in: u64) -> StoredCredentials {
        let response = json!({
            "access_token": token, "token_type": "bearer", "refresh_token": "r", "expires_in": expires_in,
        });
        let credentials = json!({
            "client_id": "c", "token_response": response, "granted_scopes": [], "token_received_at": 0,
        });
        serde_json::from_value(credentials).unwrap()
    }

    async fn is_refused(store: &TokenStore) -> bool {
        store.acquire_refresh_guard().await.err().is_some_and(|error| is_already_refreshed(&error))
    }

    #[tokio::test]
    async fn token_that_another_process_refreshed_is_not_refreshed_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = TokenFile::new(dir.path(), "web", "https://example.org/mcp");
        let (store, other) =
            (file.clone().into_store(ClientSecret::default()), file.into_store(ClientSecret::default()));
        store.save(credentials("a1", 3600)).await.unwrap();
        store.load().await.unwrap();
        assert!(!is_refused(&store).await);
        // It expires so soon that it must be refreshed as well.
        other.save(credentials("a2", 60)).await.unwrap();
        assert!(!is_refused(&store).await);
        other.save(credentials("a3", 3600)).await.unwrap();
        assert!(is_refused(&store).await);
        // The server has rejected the new one.
        store.load().await.unwrap();
        assert!(!is_refused(&store).await);
    }
}
