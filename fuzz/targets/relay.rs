//! A task on another machine: whatever its agent, its worker and its client send, each relay passes on single objects,
//! starts one task, and ends once.
//!
//! The input has a message in each line, after a letter that says who sends it.
#![no_main]

use crow_acp::{
    ParentRelay, ParentRelayAction, RelayTask, ResumedSession, WorkerRelay, WorkerRelayAction,
};
use crow_core::{Mode, SessionId};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fn check_line(line: &str) {
    assert!(!line.contains('\n'), "{line}");
    let message: Value = serde_json::from_str(line).expect("a message is JSON");
    assert!(message.is_object(), "{line}");
}

#[derive(Default)]
struct Counters {
    n_started: usize,
    n_ended: usize,
}

impl Counters {
    fn check_parent(&mut self, actions: &[ParentRelayAction]) {
        for action in actions {
            match action {
                ParentRelayAction::SendToClient(line) | ParentRelayAction::SendToWorker(line) => {
                    check_line(line);
                }
                ParentRelayAction::StartTask { .. } => self.n_started += 1,
                ParentRelayAction::CancelTask => {}
            }
        }
        assert!(self.n_started <= 1);
    }

    fn check_worker(&mut self, actions: &[WorkerRelayAction]) {
        for action in actions {
            match action {
                WorkerRelayAction::SendToAgent(line) | WorkerRelayAction::SendToParent(line) => {
                    check_line(line);
                }
                WorkerRelayAction::NotResumed { .. } => assert_eq!(self.n_ended, 0),
                WorkerRelayAction::End(_) => self.n_ended += 1,
            }
        }
        assert!(self.n_ended <= 1);
    }
}

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut counters = Counters::default();
    let mut parent = ParentRelay::new(SessionId::new("task"), "1.0.0");
    let (mut worker, actions) = WorkerRelay::start(RelayTask {
        cwd: "/work".into(),
        session: text
            .starts_with('r')
            .then(|| ResumedSession { id: "earlier".to_owned(), first_cwd: "/first".into() }),
        prompt: "Look.".to_owned(),
        model: Some("small".to_owned()),
        mode: Mode::Ask,
        version: "1.0.0",
    });
    counters.check_worker(&actions);
    for line in text.lines() {
        let (who, line) = line.split_at(line.chars().next().map_or(0, char::len_utf8));
        match who {
            "a" => counters.check_worker(&worker.handle_agent_line(line)),
            "p" => counters.check_worker(&worker.handle_parent_line(line)),
            "c" => counters.check_parent(&parent.handle_client_line(line)),
            "w" => counters.check_parent(&parent.handle_worker_line(line)),
            "+" => {
                parent.attach();
                counters.check_worker(&worker.attach());
            }
            "-" => {
                counters.check_parent(&parent.detach());
                worker.detach();
            }
            "r" => counters.check_worker(&worker.resume_again()),
            "x" => counters.check_worker(&worker.cancel()),
            "f" => {
                counters.check_worker(&worker.fail(line));
                counters.check_parent(&parent.fail(line));
            }
            _ => {}
        }
    }
});
