//! Directories from the environment: where sandboxed commands may write, and where worktrees and recordings are stored.

use std::path::{Path, PathBuf};

use super::super::Environment;

/// Temporary directories of every system.
const TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Caches of tools in the cache directory. None of them has programs that are run by name later, such as `pre-commit`,
/// `corepack` or browsers of test tools.
const NAMED_CACHES: [&str; 30] = [
    "Yarn",
    "bazelisk",
    "ccache",
    "clangd",
    "composer",
    "deno",
    "dub",
    "fontconfig",
    "go-build",
    "golangci-lint",
    "gopls",
    "hatch",
    "hex",
    "hie-bios",
    "jedi",
    "lua-language-server",
    "matplotlib",
    "mesa_shader_cache",
    "mypy",
    "node-gyp",
    "pdm",
    "pip",
    "pnpm",
    "pypoetry",
    "ruff",
    "sccache",
    "staticcheck",
    "uv",
    "yarn",
    "zig",
];

/// Caches elsewhere in the home directory. None of them has programs or configuration that is run or read at a start.
const HOME_CACHES: [&str; 9] = [
    ".gradle/caches",
    ".m2/repository",
    "go/pkg/mod",
    "go/pkg/sumdb",
    ".local/share/pnpm/store",
    ".bun/install/cache",
    ".yarn/cache",
    ".yarn/berry/cache",
    ".nuget/packages",
];

/// Caches in npm's directory, which also has programs that `npx` runs.
const NPM_CACHES: [&str; 2] = ["_cacache", "_logs"];

/// Caches in Cargo's directory, which also has installed programs. Not `git`: tools run Git in the repositories there.
const CARGO_CACHES: [&str; 4] = ["registry", ".package-cache", ".package-cache-mutate", ".global-cache"];

/// Variables with a directory for temporary files or build output.
const TEMPORARY_VARIABLES: [&str; 2] = ["TMPDIR", "CARGO_TARGET_DIR"];

/// Variables that move one cache.
const CACHE_VARIABLES: [&str; 10] = [
    "CCACHE_DIR",
    "DENO_DIR",
    "GOCACHE",
    "GOMODCACHE",
    "PIP_CACHE_DIR",
    "RUFF_CACHE_DIR",
    "SCCACHE_DIR",
    "UV_CACHE_DIR",
    "YARN_CACHE_FOLDER",
    "ZIG_GLOBAL_CACHE_DIR",
];

/// Git repositories inside caches, in which tools run Git themselves: the end of the cache's path or the variable that
/// moves it, and the path below.
const GIT_STORES: [(&str, &str); 5] = [
    ("go/pkg/mod", "cache/vcs"),
    ("GOMODCACHE", "cache/vcs"),
    ("uv", "git-v0"),
    ("UV_CACHE_DIR", "git-v0"),
    ("composer", "vcs"),
];

/// Returns the absolute path in a variable.
pub(super) fn env_dir(env: &Environment, name: &str) -> Option<PathBuf> {
    env.get(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Lists the temporary directories, existing or not.
pub(super) fn temporary_dirs(env: &Environment) -> Vec<PathBuf> {
    let fixed = TEMPORARY.iter().map(PathBuf::from);
    fixed.chain(variable_dirs(env, &TEMPORARY_VARIABLES)).collect()
}

/// Lists the caches, existing or not.
pub(super) fn cache_dirs(env: &Environment) -> Vec<PathBuf> {
    let home = env_dir(env, "HOME");
    let in_home = |name: &str| home.as_ref().map(|home| home.join(name));
    let caches = env_dir(env, "XDG_CACHE_HOME").or_else(|| in_home(".cache"));
    let mut dirs = variable_dirs(env, &CACHE_VARIABLES);
    let below = |directory: Option<PathBuf>, names: &[&str]| {
        let names = names.iter().flat_map(|name| directory.as_ref().map(|directory| directory.join(name)));
        names.collect::<Vec<_>>()
    };
    dirs.extend(below(caches, &NAMED_CACHES));
    dirs.extend(below(in_home("Library/Caches"), &NAMED_CACHES));
    dirs.extend(below(home.clone(), &HOME_CACHES));
    dirs.extend(below(env_dir(env, "npm_config_cache").or_else(|| in_home(".npm")), &NPM_CACHES));
    dirs.extend(below(env_dir(env, "CARGO_HOME").or_else(|| in_home(".cargo")), &CARGO_CACHES));
    dirs
}

/// Lists the Git repositories inside the caches, existing or not.
pub(super) fn git_store_dirs(env: &Environment) -> Vec<PathBuf> {
    let caches = cache_dirs(env);
    let stores = GIT_STORES.iter().flat_map(|(cache, store)| {
        let is_cache = |path: &&PathBuf| {
            path.ends_with(cache) || env.get(*cache).is_some_and(|moved| path.as_os_str() == moved.as_str())
        };
        caches.iter().filter(is_cache).map(|path| path.join(store)).collect::<Vec<_>>()
    });
    stores.collect()
}

/// Returns the directories in variables.
fn variable_dirs(env: &Environment, names: &[&str]) -> Vec<PathBuf> {
    let home = env_dir(env, "HOME");
    let in_home = |name: &str| home.as_ref().map(|home| home.join(name));
    let caches = env_dir(env, "XDG_CACHE_HOME").or_else(|| in_home(".cache"));
    // A variable that contains the home directory or all caches is a mistake.
    let contains_home = |path: &Path| {
        path.parent().is_none()
            || home.as_ref().is_some_and(|home| home.starts_with(path))
            || caches.as_ref().is_some_and(|caches| caches.starts_with(path))
    };
    names.iter().filter_map(|name| env_dir(env, name)).filter(|path| !contains_home(path)).collect()
}

/// Returns the directory of the tasks' git worktrees, which commands of other sessions must not write to.
pub(super) fn worktrees_dir(env: &Environment, dir: &Path) -> PathBuf {
    let state = || env_dir(env, "HOME").map(|home| home.join(".local/state"));
    let state = env_dir(env, "XDG_STATE_HOME").or_else(state);
    state.unwrap_or_else(|| dir.to_owned()).join("crow").join("worktrees")
}

/// Returns the directory older versions used for worktrees.
pub(super) fn legacy_worktrees_dir(env: &Environment, dir: &Path) -> PathBuf {
    let cache =
        env_dir(env, "XDG_CACHE_HOME").or_else(|| env_dir(env, "HOME").map(|home| home.join(".cache")));
    cache.unwrap_or_else(|| dir.to_owned()).join("crow").join("worktrees")
}

/// Returns the directory for recordings of model requests and responses, if enabled.
pub(super) fn recordings_dir(env: &Environment) -> Option<PathBuf> {
    env.get("CROW_RECORD").filter(|directory| !directory.is_empty()).map(PathBuf::from)
}

/// Returns the depth of this process below the root agent; an invalid value exceeds every limit.
pub(super) fn agent_depth(env: &Environment) -> u32 {
    env.get(crow_children::DEPTH_VARIABLE).map_or(0, |depth| depth.parse().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(env: &[(&str, &str)], dir: &str, is_writable: bool) {
        let env = env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let dirs = [temporary_dirs(&env), cache_dirs(&env)].concat();
        assert_eq!(dirs.contains(&PathBuf::from(dir)), is_writable, "{dir}");
    }

    #[test]
    fn caches_follow_their_variables() {
        let home = ("HOME", "/home/me");
        check(&[home], "/tmp", true);
        check(&[home], "/home/me/.cache/pip", true);
        check(&[home], "/home/me/.npm/_cacache", true);
        check(&[home, ("XDG_CACHE_HOME", "/c")], "/c/go-build", true);
        check(&[home, ("npm_config_cache", "/n")], "/n/_cacache", true);
        for never in
            [".cache", ".cache/pre-commit", ".cache/crow", ".npm", ".npm/_npx", ".ssh", "go", "go/bin"]
        {
            check(&[home], &format!("/home/me/{never}"), false);
        }
        check(&[home, ("XDG_CACHE_HOME", "/c")], "/c", false);
        check(&[home, ("GOCACHE", "/home/me/.cache")], "/home/me/.cache", false);
        check(&[home], "/home/me/.cargo/registry", true);
        check(&[home], "/home/me/.cargo", false);
        check(&[home], "/home/me/.cargo/git", false);
        check(&[home, ("CARGO_HOME", "/c")], "/c/registry", true);
        check(&[home, ("TMPDIR", "/run/me")], "/run/me", true);
        check(&[home, ("TMPDIR", "me")], "me", false);
        check(&[home, ("CARGO_TARGET_DIR", "/home/me")], "/home/me", false);
        check(&[home, ("CARGO_TARGET_DIR", "/")], "/", false);
        check(&[], "/tmp", true);
    }

    #[test]
    fn git_stores_are_known() {
        let env =
            [("HOME", "/h"), ("UV_CACHE_DIR", "/u")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let stores: Vec<String> = git_store_dirs(&env.into_iter().collect())
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        for store in ["/h/go/pkg/mod/cache/vcs", "/h/.cache/uv/git-v0", "/u/git-v0", "/h/.cache/composer/vcs"]
        {
            assert!(stores.iter().any(|path| path == store), "{store} is not in {stores:?}");
        }
    }

    #[test]
    fn worktrees_are_never_writable() {
        for extra in [None, Some(("XDG_CACHE_HOME", "/c")), Some(("XDG_STATE_HOME", "/s"))] {
            let variables = [("HOME", "/home/me")].into_iter().chain(extra);
            let env = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            let dir = Path::new("/home/me/.crow");
            for worktrees in [worktrees_dir(&env, dir), legacy_worktrees_dir(&env, dir)] {
                let dirs = [temporary_dirs(&env), cache_dirs(&env)].concat();
                assert!(!dirs.iter().any(|path| worktrees.starts_with(path)), "{}", worktrees.display());
            }
        }
    }
}
