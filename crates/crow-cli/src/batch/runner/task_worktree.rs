//! The worktrees of tasks: made before a task begins, and put on a branch after its end.

use crow_children::{AgentWorktree, WorktreeRequest};
use tokio_util::sync::CancellationToken;

use super::super::{task_line::BatchTask, task_output::TaskRecord};
use super::BatchContext;
use crate::failure::{CliError, CliExitCode};

/// Letters of an ID in the name of a branch.
const NAME_LETTERS_MAX: usize = 40;

/// Random bytes in the name of a branch. Many IDs may have the same letters, and a worktree of the same name is continued.
const RANDOM_BYTES: usize = 6;

/// Makes the worktree of a task that wants one.
pub(super) async fn begin_worktree(
    context: &BatchContext<'_>,
    task: &BatchTask,
) -> Result<Option<AgentWorktree>, CliError> {
    if !task.worktree {
        return Ok(None);
    }
    let failed = |reason: String| CliError::new(CliExitCode::Failed, reason);
    let directory = context.dirs.resolve(task)?;
    let mut random = [0; RANDOM_BYTES];
    getrandom::fill(&mut random).map_err(|error| failed(format!("no random numbers: {error}")))?;
    let request = WorktreeRequest {
        git: &context.git,
        farms: &context.farms,
        directory: &directory,
        worktrees_dir: &context.settings.worktrees_dir,
        name: &worktree_name(&task.id, random),
    };
    // The semaphore is never closed.
    let _permit = context.worktree_permits.acquire().await.ok();
    // The whole step is dropped if the task must stop.
    let cancel = CancellationToken::new();
    let begun = match context.external {
        Some(agent) => AgentWorktree::begin(agent, request, &cancel).await,
        None => AgentWorktree::begin_here(request, &cancel).await,
    };
    begun.map(Some).map_err(failed)
}

/// Puts the work of a task on its branch. A task whose work is lost has failed.
pub(super) async fn settle_worktree(
    context: &BatchContext<'_>,
    worktree: Option<AgentWorktree>,
    record: &TaskRecord,
    result: Result<(), CliError>,
) -> Result<(), CliError> {
    let Some(worktree) = worktree else { return result };
    let permit = context.worktree_permits.acquire().await.ok();
    let end = worktree.settle(&context.git, &context.farms, &context.settings.worktrees_dir).await;
    drop(permit);
    {
        let mut progress = record.lock();
        progress.branch = end.branch;
        progress.kept_worktree = end.kept.map(|directory| directory.display().to_string());
    }
    if let Some(fetched) = end.fetched {
        fetched.delete().await;
    }
    match end.problem {
        Some(problem) if result.is_ok() => Err(CliError::new(CliExitCode::Failed, problem)),
        Some(_) | None => result,
    }
}

/// Returns a name that says which task it is, and that no other task has, now or before.
fn worktree_name(id: &str, random: [u8; RANDOM_BYTES]) -> String {
    let letters = id.chars().map(|letter| match letter.to_ascii_lowercase() {
        letter @ ('a'..='z' | '0'..='9') => letter,
        _ => '-',
    });
    let name: String = letters.take(NAME_LETTERS_MAX).collect();
    let name = name.trim_matches('-');
    let random: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{random}", if name.is_empty() { "task" } else { name })
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::worktree_name;

    #[test]
    fn names_of_worktrees_are_those_of_branches() {
        let ids = ["parser", "Fix: the Parser!", "../x", "--", "ü", &"long".repeat(20)];
        let names: Vec<String> = ids.map(|id| worktree_name(id, [0, 1, 2, 3, 4, 0xa5])).into();
        expect![[r#"
            parser-0001020304a5
            fix--the-parser-0001020304a5
            x-0001020304a5
            task-0001020304a5
            task-0001020304a5
            longlonglonglonglonglonglonglonglonglong-0001020304a5"#]]
        .assert_eq(&names.join("\n"));
    }
}
