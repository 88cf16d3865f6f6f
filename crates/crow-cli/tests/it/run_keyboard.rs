//! Input typed or pasted into `run` on a real terminal, and which of it answers a question.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(clippy::disallowed_methods, reason = "a person starts the program as they like")]

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crow_testkit::ModelServer;
use crow_testkit::client::TestHome;
use nix::pty::openpty;

/// A loaded machine may take this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A terminal that runs the program.
struct Stage {
    model: ModelServer,
    world: TestHome,
    child: Child,
    keyboard: File,
    screen: Receiver<String>,
    seen: String,
}

impl Stage {
    fn start(script: &str, words: &[&str]) -> Self {
        let model = ModelServer::start(script);
        let world = TestHome::new(model.base_url());
        let terminal = openpty(None, None).expect("there is a terminal");
        let end = |fd: &OwnedFd| Stdio::from(fd.try_clone().expect("it can be copied"));
        let child = Command::new("setsid")
            .args(["-c", env!("CARGO_BIN_EXE_crow-cli")])
            .args(words)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", world.home())
            .env("TERM", "dumb")
            .current_dir(world.project())
            .stdin(end(&terminal.slave))
            .stdout(end(&terminal.slave))
            .stderr(end(&terminal.slave))
            .spawn()
            .expect("it starts");
        let keyboard = File::from(terminal.master);
        let mut master = keyboard.try_clone().expect("it can be copied");
        let (shows, screen) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading from a closed terminal is an error.
            while let Ok(n_bytes @ 1..) = master.read(&mut bytes) {
                if shows.send(String::from_utf8_lossy(&bytes[..n_bytes]).into_owned()).is_err() {
                    return;
                }
            }
        });
        Self { model, world, child, keyboard, screen, seen: String::new() }
    }

    fn type_in(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).expect("the program reads");
    }

    /// Waits until a text is on the screen, and drops everything up to its end.
    #[track_caller]
    fn until(&mut self, text: &str) {
        loop {
            if let Some(at) = self.seen.find(text) {
                self.seen.drain(..at + text.len());
                return;
            }
            match self.screen.recv_timeout(PATIENCE) {
                Ok(more) => self.seen.push_str(&more),
                Err(_) => panic!("{text:?} is not shown, but {:?}", self.seen),
            }
        }
    }

    fn has(&self, name: &str) -> bool {
        self.world.project().join(name).exists()
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Twenty lines, several of which look like answers.
fn paste(first: &str) -> String {
    let lines = ["y", "1", "a", "yes", "always", "3"].into_iter().cycle().take(19);
    format!("{first}\n{}\n", lines.collect::<Vec<_>>().join("\n"))
}

#[test]
fn paste_that_leads_to_a_question_does_not_answer_it() {
    let script = "call terminal {\"command\":\"touch approved\"}\ntext \"Done.\"";
    let mut stage = Stage::start(script, &["run", "-i"]);
    stage.until("› ");
    stage.type_in(&paste("go"));
    stage.until("Allow this?");
    stage.until("› ");
    // A queued answer would have been used by now: each line is processed before the next input.
    stage.type_in("what?\n");
    stage.until("what?");
    stage.until("› ");
    assert!(!stage.has("approved"), "a pasted line was taken for an answer");
    stage.model.replace_answers("text \"A prompt.\"\n".repeat(30).as_str());
    stage.type_in("n\n");
    // The pasted lines are prompts.
    stage.until("A prompt.");
    assert!(!stage.has("approved"));
}

#[test]
fn paste_at_a_question_does_not_answer_it_and_a_line_does() {
    let script = "call terminal {\"command\":\"touch approved\"}\ntext \"Done.\"";
    let mut stage = Stage::start(script, &["run", "do it"]);
    stage.until("Allow this?");
    stage.until("› ");
    stage.type_in("y\ny\n");
    stage.until("do not answer it");
    stage.until("› ");
    assert!(!stage.has("approved"), "a pasted line was taken for an answer");
    stage.type_in("y\n");
    stage.until("Done.");
    assert!(stage.has("approved"));
}

#[test]
fn text_typed_before_the_first_question_does_not_answer_it() {
    let script = "call terminal {\"command\":\"touch approved\"}\ntext \"Done.\"";
    let mut stage = Stage::start(script, &["run", "do it"]);
    // It is typed before the program has started.
    stage.type_in("y\n");
    stage.until("Allow this?");
    stage.until("› ");
    stage.type_in("\u{4}");
    stage.until("Done.");
    assert!(!stage.has("approved"), "a line from before was taken for an answer");
}

#[test]
fn line_begun_before_the_question_does_not_answer_it() {
    // The second line has left the terminal because of the end of input after it; the others have not.
    for begun in ["y", "y\u{4}", "1", "always"] {
        let script = "call terminal {\"command\":\"touch approved\"}\ntext \"Done.\"";
        let mut stage = Stage::start(script, &["run", "do it"]);
        stage.type_in(begun);
        stage.until("Allow this?");
        stage.until("› ");
        stage.type_in("\n");
        // This is no answer: the question is shown again.
        stage.until("› ");
        stage.type_in("\u{4}");
        stage.until("Done.");
        assert!(!stage.has("approved"), "{begun:?} was taken for an answer");
    }
}

#[test]
fn line_begun_by_a_paste_at_a_question_does_not_answer_it() {
    let script = "call terminal {\"command\":\"touch approved\"}\ntext \"Done.\"";
    let mut stage = Stage::start(script, &["run", "do it"]);
    stage.until("Allow this?");
    stage.until("› ");
    stage.type_in("y\ny\ny");
    stage.until("do not answer it");
    stage.until("› ");
    stage.type_in("\n");
    stage.until("› ");
    stage.type_in("\u{4}");
    stage.until("Done.");
    assert!(!stage.has("approved"), "the last line of a paste was taken for an answer");
}
