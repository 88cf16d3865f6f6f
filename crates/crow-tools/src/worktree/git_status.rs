//! Describes the state of a repository in a few lines.

use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::error::WorktreeError;
use super::git::{GitCli, GitLocation};

/// Changed files that are listed.
const FILES_MAX: usize = 15;

impl GitCli {
    /// Returns the branch and the changed files of the repository around a directory, without a lock on it.
    pub async fn describe_status(
        &self,
        dir: &Path,
        cancel: &CancellationToken,
    ) -> Result<String, WorktreeError> {
        self.find_repository(dir, cancel).await?;
        let git = self.open_repository(GitLocation::Discovered { dir: dir.to_owned() }, cancel).await?;
        let arguments =
            ["--no-optional-locks", "status", "--porcelain", "--branch", "--ignore-submodules=all"];
        Ok(summarize_status(&git.run_checked(&arguments).await?))
    }
}

/// Shortens the output of `git status --porcelain --branch`.
fn summarize_status(output: &str) -> String {
    let mut lines = output.lines();
    let branch = lines.next().unwrap_or_default().trim_start_matches("## ");
    let files: Vec<&str> = lines.collect();
    let mut text = format!("Git branch at the start: {branch}\n");
    match files.len() {
        0 => text.push_str("Git status at the start: clean"),
        1 => text.push_str("Git status at the start: 1 file"),
        n_files => text.push_str(&format!("Git status at the start: {n_files} files")),
    }
    for file in files.iter().take(FILES_MAX) {
        text.push('\n');
        text.push_str(file);
    }
    if files.len() > FILES_MAX {
        text.push_str(&format!("\n… {} more", files.len() - FILES_MAX));
    }
    text
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(output: &str, expected: &Expect) {
        expected.assert_eq(&summarize_status(output));
    }

    #[test]
    fn git_status_is_shortened() {
        check(
            "## main...origin/main [ahead 1]",
            &expect![[r#"
            Git branch at the start: main...origin/main [ahead 1]
            Git status at the start: clean"#]],
        );
        check(
            "## No commits yet on main\n?? a",
            &expect![[r#"
            Git branch at the start: No commits yet on main
            Git status at the start: 1 file
            ?? a"#]],
        );
        let files: String = (1..=17).map(|n| format!(" M f{n}\n")).collect();
        check(
            &format!("## HEAD (no branch)\n{files}"),
            &expect![[r#"
            Git branch at the start: HEAD (no branch)
            Git status at the start: 17 files
             M f1
             M f2
             M f3
             M f4
             M f5
             M f6
             M f7
             M f8
             M f9
             M f10
             M f11
             M f12
             M f13
             M f14
             M f15
            … 2 more"#]],
        );
    }
}
