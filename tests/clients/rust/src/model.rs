//! The scripted model behind the agent; run.sh opened its pipes.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};

use serde_json::Value;

/// The pipes to the model and from it.
pub struct Model {
    pipes: RefCell<ModelPipes>,
}

struct ModelPipes {
    to_model: File,
    from_model: BufReader<File>,
}

impl Model {
    pub fn open() -> Self {
        let to_model = File::options().write(true).open("/dev/fd/3").expect("run.sh opened pipe 3");
        let from_model = BufReader::new(File::open("/dev/fd/4").expect("run.sh opened pipe 4"));
        Self { pipes: RefCell::new(ModelPipes { to_model, from_model }) }
    }

    /// Adds answers.
    pub fn answer(&self, answers: &[&str]) {
        for answer in answers {
            self.say(answer);
        }
    }

    /// Returns the last text of each request since the last time, and drops the answers that are left.
    pub fn last_texts(&self) -> Vec<String> {
        let requests: Value = serde_json::from_str(&self.say("requests")).expect("requests are JSON");
        let requests = requests.as_array().cloned().unwrap_or_default();
        let last =
            |request: &Value| request["messages"].as_array()?.last()?["content"].as_str().map(str::to_owned);
        requests.iter().map(|request| last(request).unwrap_or_default()).collect()
    }

    pub fn forget_answers(&self) {
        self.say("requests");
    }

    fn say(&self, line: &str) -> String {
        let ModelPipes { to_model, from_model } = &mut *self.pipes.borrow_mut();
        writeln!(to_model, "{line}").expect("the model reads");
        let mut said = String::new();
        from_model.read_line(&mut said).expect("the model answers");
        said
    }
}
