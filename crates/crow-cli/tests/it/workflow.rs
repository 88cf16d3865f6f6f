//! The second half of the Spec Kit workflow with the whole agent: tasks, implement, converge, and what goes on around them.
//! A script in, what the client heard, what the model was asked and what is on disk out.

mod converge;
mod environment;
mod extensions;
mod fixture;
mod implement;
mod interruption;
mod issues;
mod parallel_tasks;
mod scope;
mod session_events;
mod task_list;
mod worktrees;

use expect_test::Expect;

/// Plays a script; see [`stage_file`] for its language.
#[track_caller]
fn check(script: &str, transcript: &Expect) {
    transcript.assert_eq(&fixture::played(script));
}
