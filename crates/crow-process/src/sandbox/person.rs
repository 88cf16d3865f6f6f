//! What of a person's own is run or read by itself, wherever they are: Git's configuration for all repositories, the start
//! of shells, programs that Git looks for.

use std::{
    env,
    path::{Path, PathBuf},
};

use crow_core::{GitMention, home_autorun_files};

use super::targets::{GitTargetFinder, SCRIPT_DEPTH_MAX};

/// Programs that Git starts by their names, as a shell finds them.
const PROGRAMS: [&str; 7] = ["git", "git-lfs", "git-remote-https", "ssh", "gpg", "less", "sh"];

impl GitTargetFinder<'_> {
    /// What the configurations say that hold in every repository.
    pub(super) fn user_config_mentions(&mut self) -> Vec<(GitMention, Vec<PathBuf>)> {
        let variable = |name: &str| env_var(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = self.home.map(Path::to_owned);
        let settings = variable("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
        let named = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"].into_iter().filter_map(variable);
        let files = home.map(|home| home.join(".gitconfig")).into_iter();
        let files = files.chain(settings.map(|folder| folder.join("git/config"))).chain(named);
        let mut mentions = Vec::new();
        for file in files.chain([PathBuf::from("/etc/gitconfig")]) {
            self.read_config(&file, 0, &mut mentions);
        }
        for (mention, _) in &mentions {
            if let GitMention::Folder(path) | GitMention::Program(path) = mention
                && !path.starts_with(['/', '~'])
            {
                self.found.of_all.insert(path.clone());
            }
        }
        mentions
    }

    /// What shells run at their start, and programs in the folders where they look for them.
    pub(super) fn add_startup_files(&mut self) {
        if let Some(home) = self.home {
            for name in home_autorun_files() {
                let path = home.join(name);
                if let Some(end) = self.seal_path(&path)
                    && !end.is_dir()
                {
                    self.read_script(&path, &end, &[home.to_owned()], SCRIPT_DEPTH_MAX - 1);
                }
            }
        }
        let folders = env_var("PATH").map(|path| env::split_paths(&path).collect::<Vec<_>>());
        for folder in folders.unwrap_or_default().into_iter().filter(|folder| folder.is_absolute()) {
            for name in PROGRAMS {
                let _ = self.seal_path(&folder.join(name));
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the warden is a program of its own, started as the person's others are"
)]
fn env_var(name: &str) -> Option<std::ffi::OsString> {
    env::var_os(name)
}
