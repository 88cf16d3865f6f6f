//! What is kept of a sign-in: a file of its own for each server, for its owner's eyes, bound to one address.

use std::{
    fs::{self, File},
    future::Future,
    io::{self, Write as _},
    path::{Path, PathBuf},
    pin::Pin,
    time::Duration,
};

use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;

/// Who renews a sign-in is done in this time; another process must not wait for ever.
const LOCK_TIMEOUT: Duration = Duration::from_secs(40);

/// A secret that some places give to clients as well.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct ClientSecret(pub(super) Option<String>);

/// All that is kept.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredSignIn {
    /// The address it is for.
    url: String,
    #[serde(default)]
    pub(super) secret: ClientSecret,
    pub(super) credentials: StoredCredentials,
}

/// A server's file.
#[derive(Clone)]
pub(super) struct TokenFile {
    path: PathBuf,
    url: String,
}

impl TokenFile {
    /// Names the file of a server at an address.
    pub(super) fn new(dir: &Path, server: &str, url: &str) -> Self {
        Self { path: dir.join(format!("{}.json", file_name(server))), url: url.to_owned() }
    }

    /// Reads what is kept for this address.
    pub(super) fn read(&self) -> io::Result<Option<StoredSignIn>> {
        let bytes = match fs::read(&self.path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        // One that cannot be read is none: a new sign-in writes it anew.
        Ok(serde_json::from_slice::<StoredSignIn>(&bytes).ok().filter(|stored| stored.url == self.url))
    }

    /// Removes the file, whatever address it is for.
    pub(super) fn remove(&self) -> io::Result<bool> {
        match fs::remove_file(&self.path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Replaces the file at once or not at all.
    fn write(&self, stored: &StoredSignIn) -> io::Result<()> {
        let dir = self.path.parent().unwrap_or(Path::new("."));
        create_private_dir(dir)?;
        // Made for its owner alone.
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

    /// Reads what is kept, off the thread that everybody shares.
    pub(super) async fn load_stored(&self) -> Result<Option<StoredSignIn>, String> {
        let file = self.clone();
        let read = tokio::task::spawn_blocking(move || file.read()).await;
        let read = read.unwrap_or_else(|error| Err(io::Error::other(error)));
        read.map_err(|error| format!("could not read what is kept of its sign-in: {error}"))
    }

    /// Keeps sign-ins of a client with this secret in the file.
    pub(super) fn into_store(self, secret: ClientSecret) -> TokenStore {
        TokenStore { file: self, secret }
    }
}

fn create_private_dir(dir: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(dir)
}

/// Makes a file name of a server's name, and never the same of two.
fn file_name(server: &str) -> String {
    let is_unreserved = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let encoded = server.bytes().map(|byte| match is_unreserved(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02x}"),
    });
    encoded.collect()
}

/// The file as the SDK wants it.
pub(super) struct TokenStore {
    file: TokenFile,
    secret: ClientSecret,
}

/// What the SDK's trait makes of an async function.
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
        Box::pin(async { Ok(self.run_blocking(TokenFile::read).await?.map(|stored| stored.credentials)) })
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

    // What is refused for good is of no use to anybody.
    fn on_refresh_token_rejected<'a, 'b, 'c>(&'a self, rejected: &'b StoredCredentials) -> StoreFuture<'c, ()>
    where
        'a: 'c,
        'b: 'c,
        Self: 'c,
    {
        let received_at = rejected.token_received_at;
        Box::pin(self.run_blocking(move |file| match file.read()? {
            Some(stored) if stored.credentials.token_received_at == received_at => file.remove().map(drop),
            Some(_) | None => Ok(()),
        }))
    }

    fn acquire_refresh_guard<'a, 'b>(&'a self) -> StoreFuture<'b, Option<CredentialRefreshGuard>>
    where
        'a: 'b,
        Self: 'b,
    {
        Box::pin(async {
            let timed_out = |_| Err(AuthError::CredentialStoreError("another process renews it".to_owned()));
            let lock =
                timeout(LOCK_TIMEOUT, self.run_blocking(TokenFile::lock)).await.unwrap_or_else(timed_out)?;
            Ok(Some(CredentialRefreshGuard::new(lock)))
        })
    }
}
