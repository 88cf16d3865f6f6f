//! Tasks, implementation and convergence of the Spec Kit workflow with the whole agent: a script in; the client's
//! updates, the model requests and the files out.

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

/// Runs a script; [`stage_file`] describes its language.
#[track_caller]
fn check(script: &str, transcript: &Expect) {
    transcript.assert_eq(&fixture::played(script));
}
