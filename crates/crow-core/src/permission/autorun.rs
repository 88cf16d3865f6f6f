//! Files that other programs run, or take programs from, automatically: editors, shells, hook managers, other agents.
//! Changing such a file runs something later.

use std::{ffi::OsStr, path::Path, sync::LazyLock};

use super::paths::folded_names;

/// Directories of editors, hook managers, containers and other agents, at any place.
const AUTORUN_DIRS: &[&str] = &[
    ".vscode",
    ".vscode-server",
    ".vs",
    ".zed",
    ".idea",
    ".fleet",
    ".devcontainer",
    ".husky",
    ".githooks",
    ".claude",
    ".cursor",
    ".codex",
    ".gemini",
    ".opencode",
    ".windsurf",
    ".continue",
    ".kiro",
    ".roo",
];

/// File names; a leading `*` matches any letters.
const AUTORUN_FILES: &[&str] = &[
    ".envrc",
    ".gitmodules",
    ".gitconfig",
    ".mcp.json",
    ".aider.conf.yml",
    ".yarnrc.yml",
    ".mise.toml",
    "mise.toml",
    ".gitpod.yml",
    "*.code-workspace",
    "*.sublime-project",
    ".nvim.lua",
    ".nvimrc",
    ".exrc",
    ".vimrc",
    ".lvimrc",
    ".dir-locals.el",
    ".emacs",
    ".gdbinit",
    ".lldbinit",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".xprofile",
    ".xinitrc",
    ".xsession",
    ".inputrc",
    ".tmux.conf",
    ".screenrc",
];

/// Path endings, by component.
const PATH_ENDS: &[&[&str]] = &[
    &[".cargo", "config.toml"],
    &[".cargo", "config"],
    &[".aws", "config"],
    &[".kube", "config"],
    &[".docker", "config.json"],
    &[".emacs.d", "init.el"],
];

/// Entries of the user's configuration directory that run at the start of a program.
const CONFIG_ENTRIES: &[&str] = &[
    "autostart",
    "systemd",
    "git",
    "fish",
    "nvim",
    "zsh",
    "bash",
    "nushell",
    "starship.toml",
    "mise",
    "environment.d",
    "direnv",
];

/// Other entries of the home directory that a shell or Git runs or reads: installed programs, and Git's connection
/// and signing configuration.
const HOME_ENTRIES: &[&str] = &[
    "bin",
    ".local/bin",
    ".cargo/bin",
    ".cargo/env",
    "go/bin",
    ".bun/bin",
    ".deno/bin",
    ".volta/bin",
    ".pyenv",
    ".rbenv",
    ".asdf",
    ".nvm",
    ".ssh",
    ".gnupg/gpg.conf",
    ".gnupg/gpg-agent.conf",
    ".oh-my-zsh",
    ".fzf",
    ".bashrc.d",
    ".zshrc.d",
    ".pam_environment",
];

/// Configuration files of Git hook managers, in a work tree.
const HOOK_MANAGERS: &[&str] = &[
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    "lefthook.yml",
    ".lefthook.yml",
    "lefthook-local.yml",
    ".lefthook-local.yml",
    ".overcommit.yml",
];

/// Directories of installed packages and build output, where shells and editors do not start.
const PACKAGE_DIRS: &[&str] = &["node_modules", "site-packages", "target"];

/// All of these names without a leading dot.
static UNDOTTED_NAMES: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let files = AUTORUN_FILES.iter().chain(HOOK_MANAGERS).chain(CONFIG_ENTRIES).copied();
    let ends = PATH_ENDS.iter().filter_map(|names| names.last()).copied();
    let names = files.chain(ends).chain(["launchagents"]);
    names.filter(|name| !name.starts_with('.')).map(|name| name.trim_start_matches('*')).collect()
});

/// Whether a directory, relative to a root, is searched for autorun files.
pub fn may_hold_autorun(dir: &Path) -> bool {
    !dir.iter().any(|name| PACKAGE_DIRS.iter().any(|other| name == *other))
}

/// Whether other programs run an entry of such a directory, or its content, automatically. Cheap for most names.
pub fn is_autorun_entry(dir: &Path, name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let ends_in = |end: &&str| {
        let start = name.len().checked_sub(end.len());
        start.is_some_and(|start| name.as_bytes()[start..].eq_ignore_ascii_case(end.as_bytes()))
    };
    let is_candidate = name.starts_with('.') || !name.is_ascii() || UNDOTTED_NAMES.iter().any(ends_in);
    is_candidate && is_autorun(&format!("/{}/{name}", dir.display()))
}

/// Returns the autorun files in a home directory.
pub fn home_autorun_files() -> Vec<String> {
    let files = AUTORUN_FILES.iter().filter(|name| name.starts_with('.')).map(|name| (*name).to_owned());
    let ends = PATH_ENDS.iter().map(|names| names.join("/"));
    let settings = CONFIG_ENTRIES.iter().map(|name| format!(".config/{name}"));
    files.chain(ends).chain(settings).chain(HOME_ENTRIES.iter().map(|name| (*name).to_owned())).collect()
}

/// Returns the configuration files of Git hook managers, in a work tree.
pub fn hook_manager_files() -> &'static [&'static str] {
    HOOK_MANAGERS
}

/// Returns the ends of the paths that other programs run automatically, wherever they are; a leading `*` matches any
/// letters. Case is ignored.
pub fn autorun_path_ends() -> Vec<String> {
    let names = AUTORUN_DIRS.iter().chain(AUTORUN_FILES).chain(HOOK_MANAGERS).map(|name| (*name).to_owned());
    let ends = PATH_ENDS.iter().map(|names| names.join("/"));
    let settings = CONFIG_ENTRIES.iter().map(|name| format!(".config/{name}"));
    names.chain(ends).chain(settings).chain(["library/launchagents".to_owned()]).collect()
}

/// Whether other programs run the content of a directory of this name automatically.
pub fn is_autorun_dir(name: &str) -> bool {
    AUTORUN_DIRS.iter().any(|directory| name.eq_ignore_ascii_case(directory))
}

/// Whether other programs run a file, or the programs that it names, automatically.
pub(super) fn is_autorun(path: &str) -> bool {
    let names: Vec<String> = folded_names(path).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let Some(file) = names.last() else { return false };
    let is_file = AUTORUN_FILES.iter().chain(HOOK_MANAGERS).any(|name| match name.strip_prefix('*') {
        Some(end) => file.ends_with(end),
        None => file == name,
    });
    let in_settings = names.windows(2).any(|pair| pair[0] == ".config" && CONFIG_ENTRIES.contains(&pair[1]))
        || names.windows(2).any(|pair| pair == ["library", "launchagents"]);
    is_file
        || in_settings
        || names.iter().any(|name| AUTORUN_DIRS.contains(name))
        || PATH_ENDS.iter().any(|end| names.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn autorun_entry_agrees_with_path() {
        let is_it = |path: &str| {
            let path = Path::new(path);
            is_autorun_entry(path.parent().unwrap(), path.file_name().unwrap())
        };
        for path in [
            ".vscode",
            "a/.VSCode",
            ".envrc",
            "mise.toml",
            "x.Code-Workspace",
            ".cargo/config.toml",
            "lefthook.yml",
            ".config/git",
        ] {
            assert!(is_it(path), "{path}");
        }
        for path in ["main.rs", "config.toml", "git", ".gitignore", "vscode", "a/config"] {
            assert!(!is_it(path), "{path}");
        }
        assert!(may_hold_autorun(Path::new("")) && may_hold_autorun(Path::new("a/b")));
        assert!(!may_hold_autorun(Path::new("a/node_modules/b")));
    }

    #[test]
    fn autorun_path_ends_are_autorun() {
        for end in autorun_path_ends() {
            let path = format!("/w/{}", end.replace('*', "x"));
            assert!(is_autorun(&path), "{path}");
        }
    }

    #[test]
    fn autorun_path_is_detected_by_name() {
        for path in [
            "/w/.vscode/tasks.json",
            "/w/a/.VSCODE/settings.json",
            "/w/.zed/tasks.json",
            "/w/.idea/workspace.xml",
            "/w/.envrc",
            "/w/sub/.envrc",
            "/w/.husky/pre-commit",
            "/w/.devcontainer/devcontainer.json",
            "/w/.claude/settings.local.json",
            "/w/.cursor/mcp.json",
            "/w/.nvim.lua",
            "/w/.gitmodules",
            "/w/.cargo/config.toml",
            "/w/.cargo/config",
            "/home/me/.bashrc",
            "/home/me/.config/autostart/x.desktop",
            "/home/me/.aws/config",
            "/home/me/.kube/config",
            "/w/x.code-workspace",
            "/w/.pre-commit-config.yaml",
        ] {
            assert!(is_autorun(path), "{path}");
        }
        for path in [
            "/w/src/main.rs",
            "/w/vscode/tasks.json",
            "/w/config.toml",
            "/w/cargo/config.toml",
            "/w/.cargo/credentials",
            "/w/.gitignore",
            "/w/.github/workflows/ci.yml",
            "/w/.config/app.toml",
            "/w/docs/envrc",
        ] {
            assert!(!is_autorun(path), "{path}");
        }
    }
}
