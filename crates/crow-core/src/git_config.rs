//! Recognizes the Git configuration of a fresh clone. Any other configuration may make Git run a program; `mentions`
//! finds out which.

mod mentions;
mod settings;

pub use self::mentions::{GitMention, git_mentions, script_mentions};

/// The reason why the effect of a configuration is unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GitConfigError {
    /// Git rejects it too, or reads a part of it only.
    #[error("it is not a valid Git configuration")]
    Invalid,
    /// It is longer than any handwritten configuration.
    #[error("it is too long")]
    TooLong,
}

/// The longest configuration that is examined; that of a fresh clone has a few hundred bytes.
const BYTES_MAX: usize = 64 * 1024;

/// Keys whose values have no effect beyond Git's own files.
const KEYS: &[(&str, &[&str])] = &[
    (
        "core",
        &[
            "repositoryformatversion",
            "filemode",
            "bare",
            "logallrefupdates",
            "ignorecase",
            "precomposeunicode",
            "symlinks",
            "autocrlf",
            "eol",
            "safecrlf",
        ],
    ),
    ("remote", &["url", "fetch", "tagopt"]),
    ("branch", &["remote", "merge", "rebase"]),
    ("submodule", &["url", "active"]),
    ("extensions", &["objectformat", "refstorage"]),
    // Settings by tests and scripts in their own repositories.
    ("user", &["name", "email"]),
    ("commit", &["gpgsign"]),
    ("gc", &["auto"]),
    ("init", &["defaultbranch"]),
];

/// Whether a Git configuration cannot make any Git command run a program. False if in doubt.
pub fn is_inert_git_config(text: &str) -> bool {
    if text.len() > BYTES_MAX {
        return false;
    }
    let mut section = None;
    text.split('\n').map(|line| line.trim_matches([' ', '\t'])).filter(|line| !line.is_empty()).all(|line| {
        if let Some(header) = line.strip_prefix('[') {
            section = header.strip_suffix(']').and_then(known_section);
            return section.is_some();
        }
        let Some((key, value)) = line.split_once('=') else { return false };
        let key = key.trim_end_matches([' ', '\t']).to_ascii_lowercase();
        section.is_some_and(|(name, keys): &(&str, &[&str])| {
            keys.contains(&key.as_str()) && is_plain_value(name, &key, value.trim_start_matches([' ', '\t']))
        })
    })
}

/// Finds the section of a header such as `core` or `remote "origin"`.
fn known_section(header: &str) -> Option<&'static (&'static str, &'static [&'static str])> {
    let (name, subsection) = match header.split_once(' ') {
        Some((name, quoted)) => (name, Some(quoted.strip_prefix('"')?.strip_suffix('"')?)),
        None => (header, None),
    };
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._/-+".contains(letter);
    if !subsection.unwrap_or_default().chars().all(is_plain) {
        return None;
    }
    KEYS.iter().find(|(section, _)| section.eq_ignore_ascii_case(name))
}

/// Whether a fresh repository has such a setting.
fn is_plain_setting(section: &str, key: &str, value: &str) -> bool {
    let keys = KEYS.iter().find(|(name, _)| *name == section).map(|(_, keys)| keys);
    keys.is_some_and(|keys| keys.contains(&key)) && is_plain_value(section, key, value)
}

/// A fresh clone has no quotes, escapes, comments or continued lines.
fn is_plain_value(section: &str, key: &str, value: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._/-+:@*~= ".contains(letter);
    if !value.chars().all(is_plain) || value.starts_with('-') {
        return false;
    }
    match (section, key) {
        ("remote" | "submodule", "url") => is_plain_address(value),
        _ => true,
    }
}

/// Whether Git itself connects to an address; false for `ext::` and others, which run a program.
fn is_plain_address(value: &str) -> bool {
    if value.contains("::") || value.contains("/-") || value.contains(":-") || value.contains("@-") {
        return false;
    }
    match value.split_once("://") {
        Some((scheme, _)) => ["https", "http", "ssh", "git"].contains(&scheme),
        None => value.starts_with("git@") && value.contains(':'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_of_fresh_repository_is_inert() {
        for text in [
            "",
            "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n",
            "[remote \"origin\"]\n\turl = https://example.org/a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
             [branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n",
            "[remote \"origin\"]\n\turl = git@example.org:a/b.git\n",
            "[Core]\nBare = true\n",
            "[user]\n\tname = Me\n\temail = me@example.org\n[commit]\n\tgpgsign = false\n",
        ] {
            assert!(is_inert_git_config(text), "{text}");
        }
    }

    #[test]
    fn config_with_programs_or_errors_is_not_inert() {
        for text in [
            "[core]\n\tfsmonitor = ./x\n",
            "[core] fsmonitor = ./x\n",
            "[core]\n\tbare = false\n\tsshCommand = x\n",
            "[core]\n\tbare = \\\nfalse\n\tpager = x\n",
            "[include]\n\tpath = x\n",
            "[includeIf \"gitdir:/\"]\n\tpath = x\n",
            "[filter \"x\"]\n\tclean = x\n",
            "[core \"x\"]\n\tbare = \"a\n",
            "[core\n]\nbare = false\n",
            "[core]\rfsmonitor = x\n",
            "[core]\n\tbare = false ; \n",
            "bare = false\n",
            "[core]\n\tbare\n",
            "\u{feff}[core]\n\tbare = false\n",
            "[remote \"origin\"]\n\turl = ext::sh -c x\n",
            "[remote \"origin\"]\n\turl = ssh://-oProxyCommand=x/y\n",
            "[remote \"origin\"]\n\turl = git@-oProxyCommand=x:y\n",
            "[remote \"origin\"]\n\turl = /tmp/evil\n",
            "[remote \"origin\"]\n\tuploadpack = x\n",
            "[submodule \"x\"]\n\tupdate = !x\n",
            "[extensions]\n\tworktreeConfig = true\n",
            "[core]\n\tworktree = /x\n",
        ] {
            assert!(!is_inert_git_config(text), "{text}");
        }
        assert!(!is_inert_git_config(&"\n".repeat(BYTES_MAX + 1)));
    }
}
