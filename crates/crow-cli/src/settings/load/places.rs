//! Folders that the environment names: where commands in the sandbox may write, where worktrees and recordings go.

use std::path::{Path, PathBuf};

use super::super::Environment;

/// Temporary folders of every system.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// What tools keep in the home folder to be faster the next time. Nothing that is run or read at a start: no folder
/// of programs, no configuration.
const CACHES: [&str; 11] = [
    ".cache",
    "Library/Caches",
    ".npm",
    ".gradle/caches",
    ".m2/repository",
    "go/pkg/mod",
    ".local/share/pnpm/store",
    ".bun/install/cache",
    ".yarn/cache",
    ".yarn/berry/cache",
    ".nuget/packages",
];

/// What Cargo keeps that is a cache, in its folder; programs that it installed are there too.
const CARGO: [&str; 5] = ["registry", "git", ".package-cache", ".package-cache-mutate", ".global-cache"];

/// Variables that move caches.
const MOVED: [&str; 7] = [
    "TMPDIR",
    "XDG_CACHE_HOME",
    "CARGO_TARGET_DIR",
    "GOMODCACHE",
    "GOCACHE",
    "PIP_CACHE_DIR",
    "npm_config_cache",
];

/// The folder that a variable names, if it names one.
pub(super) fn folder(env: &Environment, name: &str) -> Option<PathBuf> {
    env.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Lists them, there or not.
pub(super) fn writable(env: &Environment) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = TEMPORARY.iter().map(PathBuf::from).collect();
    let absolute = |name: &str| folder(env, name);
    let home = absolute("HOME");
    // A variable that makes a cache of everything is a mistake.
    let is_whole =
        |path: &Path| path.parent().is_none() || home.as_ref().is_some_and(|home| home.starts_with(path));
    places.extend(MOVED.iter().filter_map(|name| absolute(name)).filter(|path| !is_whole(path)));
    places.extend(home.iter().flat_map(|home| CACHES.iter().map(|cache| home.join(cache))));
    let cargo = absolute("CARGO_HOME").or_else(|| home.as_ref().map(|home| home.join(".cargo")));
    places.extend(cargo.iter().flat_map(|cargo| CARGO.iter().map(|cache| cargo.join(cache))));
    places
}

/// Where git worktrees of tasks are made: they can be made again, from their branches.
pub(super) fn worktrees(env: &Environment, dir: &Path) -> PathBuf {
    let absolute = |name: &str| folder(env, name);
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(|| dir.to_owned()).join("crow").join("worktrees")
}

/// Where everything is kept that is asked of models and answered, if anywhere.
pub(super) fn recordings(env: &Environment) -> Option<PathBuf> {
    env.get("CROW_RECORD").filter(|folder| !folder.is_empty()).map(PathBuf::from)
}

/// How many levels below a root agent this process was started; whatever cannot be read is deeper than any limit.
pub(super) fn depth(env: &Environment) -> u32 {
    env.get(crow_agent::DEPTH_VARIABLE).map_or(0, |depth| depth.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(env: &[(&str, &str)], place: &str, is_writable: bool) {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        assert_eq!(writable(&env).contains(&PathBuf::from(place)), is_writable, "{place}");
    }

    #[test]
    fn caches_are_where_variables_say() {
        let home = ("HOME", "/home/me");
        check(&[home], "/tmp", true);
        check(&[home], "/home/me/.cache", true);
        check(&[home], "/home/me/.cargo/registry", true);
        check(&[home], "/home/me/.cargo", false);
        check(&[home, ("CARGO_HOME", "/c")], "/c/registry", true);
        check(&[home, ("TMPDIR", "/run/me")], "/run/me", true);
        check(&[home, ("TMPDIR", "me")], "me", false);
        check(&[home, ("CARGO_TARGET_DIR", "/home/me")], "/home/me", false);
        check(&[home, ("CARGO_TARGET_DIR", "/")], "/", false);
        check(&[], "/tmp", true);
    }
}
