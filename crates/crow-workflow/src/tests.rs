//! Requests over a scripted session: what the user and the model do in, what the session is asked for out.

mod extension_hooks;
mod fake_parts;
mod fake_session;
mod pages;
mod questions;
mod refusals;
mod reports;
mod script;
mod steps;
mod task_runs;

use std::fs;
use std::path::Path;

use crow_core::Mode;
use expect_test::Expect;

use self::fake_session::FakeSession;
use self::pages::expand_pages;
use self::script::{ScriptLine, parse_script};
use crate::{WorkflowPort as _, WorkflowRequest, run_workflow};

/// Runs a script; compares what the session was asked for.
///
/// `have PATH: TEXT` creates a file, `have PATH approved: TEXT` one that the user approved, `config WORD` changes the
/// configuration, `confirm ANSWER` and `form ANSWER` answer later questions, `turn` begins a turn of the model, whose
/// actions follow, `child TEXT` is the answer of a child agent, and `> TEXT` is a prompt. Pages such as `$spec` are
/// those of [`pages`], and paths begin at the project or, after `$F`, at the feature.
#[track_caller]
fn check(script: &str, expected: &Expect) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let mut session = FakeSession::new(&root);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for line in parse_script(script) {
        match line {
            ScriptLine::Have { path, text, is_approved } => {
                write_file(&root.join(&path), &text);
                if is_approved {
                    session.approve_file(root.join(path), &text);
                }
            }
            ScriptLine::Prompt(text) => {
                session.log_line(&format!("> {text}"));
                let request = WorkflowRequest::parse_command(&text)
                    .or_else(|| WorkflowRequest::find_answer(session.transcript(), &text));
                let end = match request {
                    Some(request) => runtime.block_on(run_workflow(&mut session, request, Mode::Ask)),
                    None => panic!("{text} is no request"),
                };
                session.log_line(&format!("= {end:?}"));
            }
            ScriptLine::Session(change) => session.change(change),
        }
    }
    expected.assert_eq(&session.shown_log());
}

fn write_file(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, expand_pages(text)).unwrap();
}
