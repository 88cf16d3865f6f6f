//! The user's own files that are executed or read automatically: the global Git configuration, startup files of
//! shells, programs that Git looks for.

use std::{
    env,
    path::{Path, PathBuf},
};

use crow_core::{GitMention, home_autorun_files};

use super::git_targets::{GitTargetFinder, SCRIPT_DEPTH_MAX};

/// Programs that Git starts by name, as a shell finds them.
const PROGRAMS: [&str; 7] = ["git", "git-lfs", "git-remote-https", "ssh", "gpg", "less", "sh"];

impl GitTargetFinder<'_> {
    /// Returns what the global configurations mention, which applies to every repository.
    pub(super) fn user_config_mentions(&mut self) -> Vec<(GitMention, Vec<PathBuf>)> {
        let variable = |name: &str| env_var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = self.home.map(Path::to_owned);
        let config_dir = variable("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let env_files = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].into_iter().filter_map(variable);
        let files = home.map(|home| home.join(".gitconfig")).into_iter();
        let files = files.chain(config_dir.map(|directory| directory.join("git/config"))).chain(env_files);
        let mut mentions = Vec::new();
        for file in files.chain([PathBuf::from("/etc/gitconfig")]) {
            self.read_config(&file, 0, &mut mentions);
        }
        for (mention, _) in &mentions {
            if let GitMention::Directory(path) | GitMention::Program(path) = mention
                && !path.starts_with(['/', '~'])
            {
                self.targets.in_every_work_tree.insert(path.clone());
            }
        }
        mentions
    }

    /// Adds the startup files of shells, and programs in the directories of `PATH`.
    pub(super) fn add_startup_files(&mut self) {
        if let Some(home) = self.home {
            for name in home_autorun_files() {
                let path = home.join(name);
                if let Some(target) = self.seal_path(&path)
                    && !target.is_dir()
                {
                    self.read_script(&path, &target, &[home.to_owned()], SCRIPT_DEPTH_MAX - 1);
                }
            }
        }
        let directories = env_var("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>());
        for directory in directories.unwrap_or_default().into_iter().filter(|folder| folder.is_absolute()) {
            for name in PROGRAMS {
                let _ = self.seal_path(&directory.join(name));
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the supervisor is a program of its own, started as the person's others are"
)]
fn env_var(name: &str) -> Option<std::ffi::OsString> {
    env::var_os(name)
}
