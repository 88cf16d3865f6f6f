//! Shows warnings about the configuration once, until the file or its problems change.

use std::{
    fs,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    io::{self, Write as _},
    path::Path,
};

use crate::settings::{CONFIG_FILE, ConfigWarning, ConfigWarningKind};

/// The file with the digest of the warnings that were shown.
const FILE: &str = ".warned";

/// Returns the warnings that have not been shown since the file changed, and records that they are shown now. If they
/// cannot be recorded, they are shown again the next time.
pub(crate) fn unseen_warnings(dir: &Path, warnings: Vec<ConfigWarning>) -> Vec<ConfigWarning> {
    let suspicious: Vec<ConfigWarning> =
        warnings.into_iter().filter(|warning| warning.kind == ConfigWarningKind::Suspicious).collect();
    let path = dir.join(FILE);
    let stored = fs::read_to_string(&path).unwrap_or_default();
    if suspicious.is_empty() {
        // A problem that is fixed and comes back is shown again.
        if !stored.is_empty()
            && let Err(error) = fs::remove_file(&path)
        {
            tracing::debug!(%error, "could not forget which warnings were shown");
        }
        return suspicious;
    }
    let digest = warnings_digest(dir, &suspicious);
    if stored.trim() == digest {
        return Vec::new();
    }
    if let Err(error) = store_digest(&path, &digest) {
        tracing::debug!(%error, "could not note that warnings were shown");
    }
    suspicious
}

fn warnings_digest(dir: &Path, warnings: &[ConfigWarning]) -> String {
    let mut hasher = DefaultHasher::new();
    fs::read(dir.join(CONFIG_FILE)).unwrap_or_default().hash(&mut hasher);
    warnings.iter().for_each(|warning| warning.to_string().hash(&mut hasher));
    format!("{:016x}", hasher.finish())
}

fn store_digest(path: &Path, digest: &str) -> io::Result<()> {
    let mut file = crow_files::private_file_options().write(true).create(true).truncate(true).open(path)?;
    writeln!(file, "{digest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(text: &str) -> ConfigWarning {
        ConfigWarning {
            path: "config.yaml".into(),
            line: 1,
            text: text.into(),
            kind: ConfigWarningKind::Suspicious,
        }
    }

    #[test]
    fn warnings_are_shown_once_until_something_changes() {
        let dir = tempfile::tempdir().unwrap();
        let shown = |warnings: &[&str]| {
            unseen_warnings(dir.path(), warnings.iter().map(|text| warning(text)).collect()).len()
        };
        assert_eq!([shown(&["a", "b"]), shown(&["a", "b"])], [2, 0]);
        assert_eq!([shown(&["a"]), shown(&["a"])], [1, 0]);
        fs::write(dir.path().join(CONFIG_FILE), "changed: 1").unwrap();
        assert_eq!([shown(&["a"]), shown(&["a"])], [1, 0]);
        assert_eq!([shown(&[]), shown(&["a"])], [0, 1]);
    }

    #[test]
    fn retired_keys_are_never_shown() {
        let dir = tempfile::tempdir().unwrap();
        let retired = ConfigWarning { kind: ConfigWarningKind::Retired, ..warning("goal") };
        assert_eq!(unseen_warnings(dir.path(), vec![retired]), []);
        assert!(!dir.path().join(FILE).exists());
    }
}
