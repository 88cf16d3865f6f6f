//! Tokens of our network servers: created or read, stored in a file that only its owner can read, and announced.

use std::{
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
};

use crow_acp::BearerToken;
use serde_json::json;
use tempfile::NamedTempFile;

use crate::failure::{CliError, CliExitCode};

/// As long as a browser session's key: it cannot be guessed.
const TOKEN_BYTES: usize = 32;

/// A shorter one could be guessed over a network.
const CHARS_MIN: usize = 16;

/// A longer one does not fit into a request's header.
const CHARS_MAX: usize = 4096;

/// Random characters in a token file's name, which no user's file has.
const RANDOM_CHARS: usize = 16;

const TOKEN_SUFFIX: &str = ".token";

/// A token and its file.
#[derive(Debug)]
pub(crate) struct ServerToken {
    pub(crate) bearer: BearerToken,
    file: ServerTokenFile,
}

#[derive(Debug)]
enum ServerTokenFile {
    /// Removed with the process.
    Temporary(NamedTempFile),
    /// The user's file, which stays.
    Persistent(PathBuf),
}

impl ServerToken {
    /// Reads the token from the given file, or creates one for the lifetime of the process.
    pub(crate) fn load_or_create(
        dir: &Path,
        prefix: &str,
        token_file: Option<&Path>,
    ) -> Result<Self, CliError> {
        let failed = |error: io::Error| {
            let file = token_file.map(|file| format!(" {}", file.display())).unwrap_or_default();
            CliError::new(CliExitCode::Failed, format!("could not use the token file{file}: {error}"))
        };
        match token_file {
            Some(file) => Self::from_file(file).map_err(failed),
            None => Self::create_temporary(dir, prefix).map_err(failed),
        }
    }

    /// Creates a token in a temporary file, which only its owner can read.
    pub(crate) fn create_temporary(dir: &Path, prefix: &str) -> io::Result<Self> {
        let token = random_token()?;
        crow_files::create_private_dir(dir)?;
        let prefix = format!("{prefix}-");
        remove_stale_tokens(dir, &prefix)?;
        let mut builder = tempfile::Builder::new();
        let mut file =
            builder.prefix(&prefix).suffix(TOKEN_SUFFIX).rand_bytes(RANDOM_CHARS).tempfile_in(dir)?;
        // Locked before it has content: the cleanup of another process skips locked and empty files.
        file.as_file().lock()?;
        file.write_all(token.as_bytes())?;
        file.flush()?;
        Ok(Self { bearer: BearerToken::new(token), file: ServerTokenFile::Temporary(file) })
    }

    fn from_file(path: &Path) -> io::Result<Self> {
        let file = ServerTokenFile::Persistent(std::path::absolute(path)?);
        let created = crow_files::private_file_options().write(true).create_new(true).open(path);
        let token = match created {
            Ok(mut created) => {
                let token = random_token()?;
                created.write_all(token.as_bytes())?;
                token
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_token(path)?,
            Err(error) => return Err(error),
        };
        Ok(Self { bearer: BearerToken::new(token), file })
    }

    fn path(&self) -> &Path {
        match &self.file {
            ServerTokenFile::Temporary(file) => file.path(),
            ServerTokenFile::Persistent(path) => path,
        }
    }
}

/// Prints the address and the token file on stdout as one JSON line.
pub(crate) fn announce_server(url: &str, token: Option<&ServerToken>) -> Result<(), CliError> {
    let line = json!({"url": url, "token_file": token.map(ServerToken::path), "pid": std::process::id()});
    let mut out = io::stdout();
    // Without this line no client can connect.
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(|error| {
        CliError::new(CliExitCode::Failed, format!("could not announce the address on stdout: {error}"))
    })
}

/// Removes tokens of servers that were killed: the system releases a lock with its process.
fn remove_stale_tokens(dir: &Path, prefix: &str) -> io::Result<()> {
    for entry in fs::read_dir(dir)?.flatten() {
        let name = entry.file_name();
        let random_part =
            name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_suffix(TOKEN_SUFFIX));
        let is_ours = random_part.is_some_and(|random_part| {
            random_part.len() == RANDOM_CHARS && random_part.chars().all(|c| c.is_ascii_alphanumeric())
        });
        let Some(file) = is_ours.then(|| File::open(entry.path()).ok()).flatten() else { continue };
        if file.try_lock().is_ok() && file.metadata().is_ok_and(|metadata| metadata.len() > 0) {
            // Another process may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
    Ok(())
}

fn random_token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn read_token(path: &Path) -> io::Result<String> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    if crow_files::is_accessible_to_others(&metadata) {
        return Err(io::Error::other("other users can read it; run `chmod 600` on it"));
    }
    let mut text = String::new();
    File::open(path)?.take(CHARS_MAX as u64 + 1).read_to_string(&mut text)?;
    let token = text.trim();
    if !(CHARS_MIN..=CHARS_MAX).contains(&token.len()) || !token.chars().all(|c| c.is_ascii_graphic()) {
        return Err(io::Error::other("a token has 16 to 4096 printable ASCII characters and no spaces"));
    }
    Ok(token.to_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn check(text: &str, mode: u32, expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let read =
            ServerToken::from_file(&file).map(|key| key.bearer == BearerToken::new(text.trim().to_owned()));
        assert_eq!(read.map_or_else(|error| error.to_string(), |same| same.to_string()), expected);
    }

    #[test]
    fn file_with_a_token_is_read() {
        let odd = "a token has 16 to 4096 printable ASCII characters and no spaces";
        check("0123456789abcdef\n", 0o600, "true");
        check("0123456789abcdef\n", 0o400, "true");
        check("0123456789abcdef\n", 0o640, "other users can read it; run `chmod 600` on it");
        check("0123456789abcde\n", 0o600, odd);
        check("", 0o600, odd);
        check("0123456789 abcdef", 0o600, odd);
        check("0123456789\nabcdef", 0o600, odd);
        check(&"x".repeat(5000), 0o600, odd);
    }

    #[test]
    fn missing_file_is_created_private_and_kept() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("token");
        let token = ServerToken::from_file(&file).unwrap().bearer;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(token, ServerToken::from_file(&file).unwrap().bearer);
    }

    #[test]
    fn stale_token_is_removed_at_the_next_start() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| directory.path().join(name);
        let names = ["acp-0123456789abcdef.token", "acp-mine.token", "acp-bridge-0123456789abcdef.token"];
        names.iter().for_each(|name| fs::write(file(name), "x").unwrap());
        let alive = ServerToken::create_temporary(directory.path(), "acp").unwrap();
        let next = ServerToken::create_temporary(directory.path(), "acp").unwrap();
        assert_eq!(names.map(|name| file(name).exists()), [false, true, true]);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 4);
        drop((alive, next));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn temporary_token_is_removed_on_drop() {
        let directory = tempfile::tempdir().unwrap();
        let key = ServerToken::create_temporary(directory.path(), "acp").unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        drop(key);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
