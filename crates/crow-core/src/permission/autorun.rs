//! Files that other programs run, or take programs from, by themselves: an editor that opens the folder, a shell that
//! starts in it, a hook manager, another agent. Changing one is running something later, on someone else's command.

use std::{ffi::OsStr, path::Path, sync::LazyLock};

use super::paths::folded_names;

/// Folders of editors, hook managers, containers and other agents, wherever they are.
const FOLDERS: &[&str] = &[
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

/// Files, by their names; `*` at the beginning is any letters.
const FILES: &[&str] = &[
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

/// The ends of paths, name by name.
const ENDS: &[&[&str]] = &[
    &[".cargo", "config.toml"],
    &[".cargo", "config"],
    &[".aws", "config"],
    &[".kube", "config"],
    &[".docker", "config.json"],
    &[".emacs.d", "init.el"],
];

/// Folders in the folder of a person's settings whose contents are run at the start of something.
const SETTINGS: &[&str] = &[
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

/// What else of a home folder is run, or read by what is run, at the start of a shell or by Git: programs that are
/// called by name, and what Git connects and signs with.
const OF_HOME: &[&str] = &[
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

/// Configurations of programs that keep hooks for Git, in the folder of a work tree.
const HOOK_MANAGERS: &[&str] = &[
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    "lefthook.yml",
    ".lefthook.yml",
    "lefthook-local.yml",
    ".lefthook-local.yml",
    ".overcommit.yml",
];

/// Folders that tools fill with what others made; no shell or editor is at home in them.
const OF_PACKAGES: &[&str] = &["node_modules", "site-packages", "target"];

/// All of these names that do not begin with a dot.
static WITHOUT_DOT: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let files = FILES.iter().chain(HOOK_MANAGERS).chain(SETTINGS).copied();
    let ends = ENDS.iter().filter_map(|names| names.last()).copied();
    let names = files.chain(ends).chain(["launchagents"]);
    names.filter(|name| !name.starts_with('.')).map(|name| name.trim_start_matches('*')).collect()
});

/// Whether files that other programs run by themselves are looked for in a folder, given as seen from a session's folder.
pub fn may_hold_autorun(below: &Path) -> bool {
    !below.iter().any(|name| OF_PACKAGES.iter().any(|other| name == *other))
}

/// Whether other programs run an entry of such a folder, or what is in it, by themselves. Cheap for most names.
pub fn is_autorun_entry(below: &Path, name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let ends_in = |end: &&str| {
        let start = name.len().checked_sub(end.len());
        start.is_some_and(|start| name.as_bytes()[start..].eq_ignore_ascii_case(end.as_bytes()))
    };
    let may_be = name.starts_with('.') || !name.is_ascii() || WITHOUT_DOT.iter().any(ends_in);
    may_be && is_autorun(&format!("/{}/{name}", below.display()))
}

/// Lists what other programs run, or take programs from, by themselves in a person's home folder.
pub fn home_autorun_files() -> Vec<String> {
    let files = FILES.iter().filter(|name| name.starts_with('.')).map(|name| (*name).to_owned());
    let ends = ENDS.iter().map(|names| names.join("/"));
    let settings = SETTINGS.iter().map(|name| format!(".config/{name}"));
    files.chain(ends).chain(settings).chain(OF_HOME.iter().map(|name| (*name).to_owned())).collect()
}

/// Lists the configurations of programs that keep hooks for Git, in the folder of a work tree.
pub fn hook_manager_files() -> &'static [&'static str] {
    HOOK_MANAGERS
}

/// Whether other programs run what is in a folder of this name by themselves.
pub fn is_autorun_folder(name: &str) -> bool {
    FOLDERS.iter().any(|folder| name.eq_ignore_ascii_case(folder))
}

/// Whether other programs run what is in a file, or what it names, by themselves.
pub(super) fn is_autorun(path: &str) -> bool {
    let names: Vec<String> = folded_names(path).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let Some(file) = names.last() else { return false };
    let is_file = FILES.iter().chain(HOOK_MANAGERS).any(|name| match name.strip_prefix('*') {
        Some(end) => file.ends_with(end),
        None => file == name,
    });
    let in_settings = names.windows(2).any(|pair| pair[0] == ".config" && SETTINGS.contains(&pair[1]))
        || names.windows(2).any(|pair| pair == ["library", "launchagents"]);
    is_file
        || in_settings
        || names.iter().any(|name| FOLDERS.contains(name))
        || ENDS.iter().any(|end| names.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_told_as_paths_are() {
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
    fn what_runs_by_itself_is_known_by_its_place() {
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
