//! The GitHub repository of a project's remote.

use std::fmt;

use crate::{SpeckitError, SpeckitProject, git};

/// The remote whose repository gets the issues.
const REMOTE: &str = "origin";

/// The hosts of GitHub; the last one is for networks that allow SSH only on port 443.
const HOSTS: [&str; 3] = ["github.com", "www.github.com", "ssh.github.com"];

/// A repository on GitHub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GithubRepository {
    /// The owner.
    pub owner: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for GithubRepository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// Returns the repository of the project's remote, or an error if it is not on GitHub.
pub fn github_repository(project: &SpeckitProject) -> Result<GithubRepository, SpeckitError> {
    let invalid = |reason: String| Err(SpeckitError::Invalid(reason));
    let Some(address) = git::remote_address(project.root(), REMOTE) else {
        return invalid(format!(
            "issues are created in the GitHub repository of the remote {REMOTE}, and this project has no such \
             remote; add it with `git remote add {REMOTE} https://github.com/OWNER/REPO.git`"
        ));
    };
    let Some((host, path)) = split_address(&address) else {
        return invalid(format!(
            "the remote {REMOTE} is a directory and not a repository on GitHub; no issue is created"
        ));
    };
    if !HOSTS.iter().any(|host_name| host_name.eq_ignore_ascii_case(host)) {
        return invalid(format!("the remote {REMOTE} is at {host:?} and not on GitHub; no issue is created"));
    }
    parse_repository(path).map_or_else(
        || invalid(format!("the remote {REMOTE} is on GitHub, but its URL has no OWNER/REPO")),
        Ok,
    )
}

/// Splits a URL into host and path, without credentials and port.
fn split_address(address: &str) -> Option<(&str, &str)> {
    let (authority, path) = match address.split_once("://") {
        Some((scheme, rest)) => {
            let is_known = ["https", "http", "ssh", "git", "git+ssh"].contains(&scheme);
            rest.split_once('/').filter(|_| is_known)?
        }
        None => address.split_once(':').filter(|(authority, _)| !authority.contains('/'))?,
    };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let host = host.split_once(':').map_or(host, |(host, _)| host);
    (!host.is_empty()).then_some((host, path))
}

fn parse_repository(path: &str) -> Option<GithubRepository> {
    let path = path.trim_matches('/');
    let (owner, name) = path.strip_suffix(".git").unwrap_or(path).split_once('/')?;
    let is_name = |name: &str| {
        let is_allowed_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !name.is_empty() && !name.starts_with('.') && name.bytes().all(is_allowed_byte)
    };
    (is_name(owner) && is_name(name))
        .then(|| GithubRepository { owner: owner.to_owned(), name: name.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, expected: &str) {
        let shown = match split_address(address) {
            None => "no host".to_owned(),
            Some((host, path)) => match parse_repository(path) {
                Some(repository) => format!("{host} {repository}"),
                None => format!("{host} no repository"),
            },
        };
        assert_eq!(shown, expected, "{address}");
    }

    #[test]
    fn urls_are_parsed_to_repositories() {
        check("https://github.com/octo/photos.git", "github.com octo/photos");
        check("https://github.com/octo/photos/", "github.com octo/photos");
        check("https://me:secret@github.com/octo/photos", "github.com octo/photos");
        check("git@github.com:octo/photos.git", "github.com octo/photos");
        check("github.com:octo/my.photos", "github.com octo/my.photos");
        check("ssh://git@ssh.github.com:443/octo/photos.git", "ssh.github.com octo/photos");
        check("https://github.com.example.org/octo/photos", "github.com.example.org octo/photos");
        check("https://example.org/github.com/octo/photos", "example.org no repository");
        check("https://github.com/octo", "github.com no repository");
        check("https://github.com/octo/a b", "github.com no repository");
        check("../photos.git", "no host");
        check("/srv/github.com:octo/photos", "no host");
        check("ext::sh -c x", "ext no repository");
        check("file:///srv/photos", "no host");
    }
}
