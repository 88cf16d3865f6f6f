//! Spec Kit steps that write documents, as transcripts: the client's updates, the model requests and the files.
//!
//! ```text
//! client: {…}                   the client's capabilities; none without this line
//! config: LINE                  a line of configuration
//! have spec plan                creates these pages in a feature directory and selects the feature
//! file NAME "TEXT"              a file of the project
//! model: text "Hi" | call …     the model's next answer; $F is the feature directory, $spec, $plan … are whole pages
//! > prompt TEXT                 sends a prompt; \n in it is a line break
//! > end                         waits for the response to the oldest open prompt
//! > still TEXT                  sends a prompt that must change nothing: no model request, no row, no file
//! > answer WORD, > form WORDS   answers the next permission question, the next form
//! > wait TEXT, > asked N        waits until a line contains TEXT, until the model has N requests
//! > hung-up N                   waits until the client of request N, from 0, disconnected
//! > cancel, > release           cancels the turn, continues a held answer
//! > kill                        kills the agent, starts another one and loads the session there
//! > fork, > second              continues in a copy, in another session of the same directory
//! > first                       continues in the session before
//! > put NAME "TEXT"             writes a file of the project, or removes it without a text
//! > link NAME TARGET            creates a link
//! > cat NAME WORD               shows the lines of a file that contain a word
//! > changes NAME PAGE           shows the lines in which a file differs from a page
//! > told TEXT                   counts a text, in its JSON form, in the last prompt
//! > tree                        shows all files
//! ```
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod arguments;
mod end_to_end;
mod forms;
mod prerequisites;
mod question_answers;
mod questions;
mod repair;
mod status;
mod steps;
mod write_scope;

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crow_testkit::client::{FakeClient, TestHome};
use crow_testkit::{Answer, ModelServer, Script};
use expect_test::Expect;
use serde_json::{Value, json};

/// The feature directory of these tests.
const FEATURE: &str = ".specify/specs/001-photo-albums";

/// Characters of the model's text in a transcript.
const SHOWN_CHARS: usize = 240;

/// Characters around a difference in a transcript.
const DIFFERENCE_CHARS: usize = 120;

const PAGES: [(&str, &str); 13] = [
    ("constitution-bad", include_str!("speckit/pages/constitution-bad.md")),
    ("constitution", include_str!("speckit/pages/constitution.md")),
    ("plan-bad", include_str!("speckit/pages/plan-bad.md")),
    ("plan", include_str!("speckit/pages/plan.md")),
    ("quickstart", include_str!("speckit/pages/quickstart.md")),
    ("research", include_str!("speckit/pages/research.md")),
    ("security-bad", include_str!("speckit/pages/security-bad.md")),
    ("security", include_str!("speckit/pages/security.md")),
    ("spec-bad", include_str!("speckit/pages/spec-bad.md")),
    ("spec-open", include_str!("speckit/pages/spec-open.md")),
    ("spec", include_str!("speckit/pages/spec.md")),
    ("tasks-bad", include_str!("speckit/pages/tasks-bad.md")),
    ("tasks", include_str!("speckit/pages/tasks.md")),
];

/// Runs a script and compares the transcript.
#[track_caller]
fn check(script: &str, transcript: &Expect) {
    transcript.assert_eq(&transcript_of(script));
}

/// Runs a script and returns the transcript.
fn transcript_of(script: &str) -> String {
    run(async {
        let mut stage = Stage::new(script).await;
        for line in script.lines().map(str::trim).filter(|line| line.starts_with('>')) {
            stage.act(line).await;
        }
        stage.close().await
    })
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime can be made").block_on(test)
}

fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_crow-cli"))
}

struct Stage {
    server: ModelServer,
    world: TestHome,
    client: FakeClient,
    /// The sessions, the current one last.
    sessions: Vec<String>,
    prompts: VecDeque<u64>,
    /// The log of earlier clients.
    before: String,
}

impl Stage {
    async fn new(script: &str) -> Self {
        let server = ModelServer::start(Script::default());
        let world = TestHome::new(server.base_url());
        let mut capabilities = json!({});
        for line in script.lines().map(str::trim).filter(|line| !line.starts_with('>')) {
            match line.split_once(' ') {
                Some(("model:", answer)) => {
                    server.add_answers(Script::new([Answer::parse(&with_pages(answer))]));
                }
                Some(("client:", offered)) => {
                    capabilities = serde_json::from_str(offered).expect("client: {…}");
                }
                Some(("config:", yaml)) => world.add_config(yaml),
                Some(("have", names)) => lay_out(&world, names),
                Some(("file", file)) => put(&world, file),
                Some(_) | None => assert!(line.is_empty(), "unknown line: {line}"),
            }
        }
        let client = start(&world, capabilities).await;
        let mut stage = Self {
            server,
            world,
            client,
            sessions: Vec::new(),
            prompts: VecDeque::new(),
            before: String::new(),
        };
        stage.open().await;
        stage
    }

    async fn open(&mut self) {
        let session = self.client.new_session(&self.world.project()).await;
        self.sessions.push(session);
    }

    fn session(&self) -> String {
        self.sessions.last().expect("a session is open").clone()
    }

    async fn act(&mut self, line: &str) {
        let action = line[1..].trim();
        let (verb, rest) = action.split_once(' ').unwrap_or((action, ""));
        match verb {
            "answer" => self.client.permission_answers.push_back(rest.to_owned()),
            "form" => self.client.form_answers.push_back(rest.to_owned()),
            "wait" => self.client.wait_for_line(rest).await,
            "asked" => self.server.wait_for_requests(rest.parse().expect("> asked N")).await,
            "hung-up" => self.server.wait_for_disconnect(rest.parse().expect("> hung-up N")).await,
            "release" => self.server.release(),
            "put" => put(&self.world, rest),
            "link" => {
                let (name, target) = rest.split_once(' ').expect("> link NAME TARGET");
                let path = self.world.project().join(named(name));
                fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder can be made");
                symlink(target, path).expect("a link can be made");
            }
            "end" => {
                let id = self.prompts.pop_front().expect("a prompt runs");
                let ended = self.client.response_to(id).await;
                self.client.add_to_log(spelled(&ended));
            }
            "cat" => {
                let (name, word) = rest.split_once(' ').unwrap_or((rest, ""));
                let text = self.read(name);
                let shown = text.lines().filter(|line| line.contains(word)).map(|line| format!("\n  {line}"));
                self.client.add_to_log(format!("{name}:{}", shown.collect::<String>()));
            }
            "told" => {
                let said = serde_json::from_str::<String>(&format!("\"{rest}\"")).expect("a text");
                let requests = self.server.requests();
                let messages = requests.last().and_then(|request| request["messages"].as_array());
                let last = messages.into_iter().flatten().rfind(|message| message["role"] == "user");
                let told = last.and_then(|message| message["content"].as_str()).expect("it was asked");
                self.client.add_to_log(format!("told {} times", told.matches(&said).count()));
            }
            "changes" => {
                let (name, page) = rest.split_once(' ').expect("> changes NAME PAGE");
                let (_, page) = PAGES.iter().find(|(known, _)| *known == page).expect("a page");
                let text = self.read(name);
                let gone = page.lines().filter(|line| !text.lines().any(|other| other == *line));
                let come = text.lines().filter(|line| !page.lines().any(|other| other == *line));
                let shown =
                    gone.map(|line| format!("\n  - {line}")).chain(come.map(|line| format!("\n  + {line}")));
                self.client.add_to_log(format!("{name}:{}", shown.collect::<String>()));
            }
            _ => {
                self.client.add_to_log(line);
                self.ask(verb, rest).await;
            }
        }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.world.project().join(named(name))).expect("the file is there")
    }

    async fn ask(&mut self, verb: &str, rest: &str) {
        let session = self.session();
        match verb {
            "prompt" => {
                let said = rest.replace("\\n", "\n");
                self.prompts.push_back(self.client.prompt(&session, &said).await);
            }
            "still" => self.still(&rest.replace("\\n", "\n")).await,
            "cancel" => self.client.notify("session/cancel", json!({"sessionId": session})).await,
            "kill" => {
                let capabilities = self.client.editor.capabilities().clone();
                let fresh = start(&self.world, capabilities).await;
                let old = std::mem::replace(&mut self.client, fresh);
                self.before += &old.kill().await;
                self.prompts.clear();
                self.client.load_session(&session, &self.world.project()).await.expect("the session loads");
            }
            "fork" => {
                let params = json!({"sessionId": session, "cwd": self.world.project(), "mcpServers": []});
                let copy = self.client.request("session/fork", params).await.expect("it is copied");
                self.sessions.push(copy["sessionId"].as_str().expect("a copy has a name").to_owned());
            }
            "second" => self.open().await,
            "first" => self.sessions.rotate_right(1),
            "tree" => {
                for (name, text) in tree(&self.world.project()) {
                    self.client.add_to_log(format!("  {name} {}", brief(&text)));
                }
            }
            other => panic!("unknown action: {other}"),
        }
    }

    /// Sends a prompt that must send no model request and change nothing.
    async fn still(&mut self, said: &str) {
        let before = self.standing().await;
        let id = self.client.prompt(&self.session(), said).await;
        let ended = self.client.response_to(id).await;
        self.client.add_to_log(spelled(&ended));
        let after = self.standing().await;
        assert_eq!(
            before,
            after,
            "{said} asked the model, or wrote something; after:\n{}",
            self.client.log()
        );
    }

    /// Returns the number of model requests, the stored session, and the files on disk.
    #[expect(clippy::disallowed_methods, reason = "a person starts the program as they like")]
    async fn standing(&self) -> (usize, String, BTreeMap<String, String>) {
        let mut command = tokio::process::Command::new(binary());
        let stored = command
            .args(["inspect", "-s", &self.session(), "-m"])
            .env("HOME", self.world.home())
            .current_dir(self.world.project())
            .output();
        let stored = String::from_utf8(stored.await.expect("the binary starts").stdout).expect("text");
        (self.server.n_requests(), stored, tree(&self.world.project()))
    }

    async fn close(mut self) -> String {
        self.client.wait_for_responses().await;
        let home = self.world.home().display().to_string();
        let mut text = self.before + &self.client.log();
        for (number, request) in self.server.requests().iter().enumerate() {
            text += &format!("asked {number}{}\n", asked(request).replace(&home, "$HOME"));
        }
        assert_eq!(
            self.server.rejections(),
            Vec::<String>::new(),
            "the model refused a request; after:\n{text}"
        );
        let lines = text.lines().filter(|line| !line.starts_with("~ "));
        without_dates(&lines.map(|line| format!("{}\n", difference(line).trim_end())).collect::<String>())
    }
}

/// Starts an agent and masks whole pages in its log.
async fn start(world: &TestHome, capabilities: Value) -> FakeClient {
    let mut client = FakeClient::start_with(binary(), &world.home(), capabilities).await;
    for (name, page) in PAGES {
        client.mask(page, format!("${name}"));
    }
    client
}

fn spelled(ended: &Result<Value, Value>) -> String {
    match ended {
        Ok(ended) => format!("= {}", ended["stopReason"].as_str().unwrap_or_default()),
        Err(error) => format!("! {}", error["data"]["details"].as_str().unwrap_or_default()),
    }
}

/// Replaces `$F` by the feature directory.
fn named(name: &str) -> String {
    name.replace("$F", FEATURE)
}

/// Replaces names of pages by their contents, as JSON.
fn with_pages(text: &str) -> String {
    let with = |text: String, (name, page): &(&str, &str)| {
        text.replace(&format!("${name}"), &json!(page).to_string())
    };
    named(&PAGES.iter().fold(text.to_owned(), with))
}

fn put(world: &TestHome, words: &str) {
    let (name, text) = words.split_once(' ').unwrap_or((words, ""));
    let path = world.project().join(named(name));
    if text.is_empty() {
        return fs::remove_file(path).expect("the file is there");
    }
    fs::create_dir_all(path.parent().expect("it has a folder")).expect("a folder can be made");
    let text: String = serde_json::from_str(&with_pages(text)).expect("the text is a JSON string");
    fs::write(path, text).expect("the file can be written");
}

/// Creates pages of the feature.
fn lay_out(world: &TestHome, names: &str) {
    put(
        world,
        &format!(".specify/feature.json {}", json!(format!("{{\"feature_directory\":\"{FEATURE}\"}}\n"))),
    );
    for name in names.split(' ') {
        let file = match name {
            "constitution" => ".specify/memory/constitution.md".to_owned(),
            "security" => "$F/checklists/security.md".to_owned(),
            name => format!("$F/{name}.md"),
        };
        put(world, &format!("{file} ${name}"));
    }
}

/// Returns every file below a directory, by relative path.
fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be read") {
            let path: PathBuf = entry.expect("it can be read").path();
            let name = path.strip_prefix(root).expect("it is below").display().to_string();
            if let Ok(target) = fs::read_link(&path) {
                files.insert(name, format!("-> {}", target.display()));
            } else if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(name, String::from_utf8_lossy(&fs::read(&path).expect("read")).into_owned());
            }
        }
    }
    files
}

/// Renders a text as one line: the name of a page, or its first line and the number of further lines.
fn brief(text: &str) -> String {
    if let Some((name, _)) = PAGES.iter().find(|(_, page)| *page == text) {
        return format!("${name}");
    }
    let first = text.lines().next().unwrap_or_default();
    match text.lines().count() {
        0 | 1 => first.to_owned(),
        n_lines => format!("{first} … {n_lines} lines"),
    }
}

/// Renders the part of a request after the model's last reply, and the workflow's tools in it.
fn asked(request: &Value) -> String {
    let tools = request["tools"].as_array();
    let names = tools.into_iter().flatten().filter_map(|tool| tool["function"]["name"].as_str());
    let names: Vec<&str> = names.filter(|name| name.starts_with("speckit")).collect();
    let offered = match (tools, names.is_empty()) {
        (None, _) => " without tools".to_owned(),
        (Some(_), true) => String::new(),
        (Some(_), false) => format!(" with {}", names.join(" ")),
    };
    let messages = request["messages"].as_array().expect("it has messages");
    let begun = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
    let said = messages[begun..].iter().filter(|message| message["role"] != "system");
    let said = said.map(|message| {
        let text = message["content"].as_str().unwrap_or_default();
        format!("\n  {}:{}", message["role"].as_str().unwrap_or_default(), words(text))
    });
    format!("{offered}{}", said.collect::<String>())
}

/// Renders a text with the names, first lines and problems of its resources only.
fn words(text: &str) -> String {
    let mut spelled = String::new();
    let mut rest = text;
    while let Some((before, resource)) = rest.split_once("<resource uri=\"") {
        let (uri, body) = resource.split_once("\">\n").expect("a resource has a name");
        let (body, after) = body.split_once("\n</resource>").expect("a resource has an end");
        spelled += &quoted(before);
        spelled += &format!(" + {uri} {:?}", body.lines().next().unwrap_or_default());
        if uri.ends_with("/repair") {
            let problems = body.lines().skip(1).take_while(|line| !line.starts_with("Put right"));
            let problems = problems.filter(|line| line.starts_with("- "));
            spelled.extend(problems.map(|problem| format!("\n    {problem}")));
        }
        rest = after;
    }
    spelled + &quoted(rest)
}

fn quoted(text: &str) -> String {
    let text = PAGES.iter().fold(text.trim_matches('\n').to_owned(), |text, (name, page)| {
        text.replace(page.trim_end(), &format!("${name}"))
    });
    if text.is_empty() {
        return String::new();
    }
    format!(" {:?}", text.chars().take(SHOWN_CHARS).collect::<String>())
}

/// Renders the difference of a changed file, shortened.
fn difference(line: &str) -> String {
    let parts = line.split_once(" diff ").and_then(|(head, diff)| {
        let (path, texts) = diff.split_once(' ')?;
        let (old, new) = texts.split_once(" -> ")?;
        let text = |json: &str| serde_json::from_str::<Option<String>>(json).ok();
        Some((head, path, text(old)?, text(new)?))
    });
    let Some((head, path, old, new)) = parts else { return line.to_owned() };
    let lines = |text: &Option<String>| -> Vec<String> {
        text.iter().flat_map(|text| text.lines()).map(str::to_owned).collect()
    };
    // A page with changes is shown with them.
    let page = |text: &Option<String>| {
        let name = text.as_deref()?.strip_prefix('$')?.to_owned();
        PAGES.iter().find(|(known, _)| *known == name).map(|(_, page)| (*page).to_owned())
    };
    let old = if page(&new).is_none() { page(&old).or(old) } else { old };
    let (olds, news) = (lines(&old), lines(&new));
    let alike = |pairs: &mut dyn Iterator<Item = bool>| pairs.take_while(|is_alike| *is_alike).count();
    let n_before = alike(&mut olds.iter().zip(&news).map(|(old, new)| old == new));
    let n_most = olds.len().min(news.len()) - n_before;
    let n_behind =
        alike(&mut olds.iter().rev().zip(news.iter().rev()).map(|(old, new)| old == new)).min(n_most);
    let shown = |lines: &[String]| {
        let text = lines[n_before..lines.len() - n_behind].join("\n");
        let cut: String = text.chars().take(DIFFERENCE_CHARS).collect();
        format!("{:?}{}", cut, if cut == text { "" } else { "…" })
    };
    let before = if old.is_none() { "null".to_owned() } else { shown(&olds) };
    format!("{head} diff {path} {before} -> {}", shown(&news))
}

/// Masks dates.
fn without_dates(text: &str) -> String {
    let bytes = text.as_bytes();
    let is_date = |at: usize| {
        bytes.get(at..at + 10).is_some_and(|date| {
            date.iter().enumerate().all(|(n, byte)| match n {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            })
        })
    };
    let mut hidden = String::new();
    let mut copied = 0;
    for at in 0..bytes.len() {
        if at >= copied && is_date(at) {
            hidden += &text[copied..at];
            hidden += "$DATE";
            copied = at + 10;
        }
    }
    hidden + &text[copied..]
}
