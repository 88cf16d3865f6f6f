use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::symlink,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    thread::JoinHandle,
};

use crow_core::{CallId, ToolAccess, ToolArguments, ToolCall, ToolResult};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};

use super::{Machine, show};
use crate::ToolCx;

/// Enough to hit the moments between evaluating, resolving and opening.
const TRIES: usize = 1500;

/// A search reads every directory again, so that each has such a moment.
const SEARCHES: usize = 300;

/// Calls until each way to end was seen; on a busy machine the two threads may take turns for long.
const TRIES_MAX: usize = 50 * TRIES;

/// A directory of the project and a link to one outside that are swapped continuously.
struct Swapping {
    machine: Machine,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Swapping {
    fn start() -> Self {
        let machine = Machine::new(|cwd| {
            for (dir, text) in [(cwd.join("in"), "inside"), (cwd.join("../outside"), "outside")] {
                fs::create_dir_all(dir.join("deep")).unwrap();
                fs::write(dir.join("file"), text).unwrap();
                fs::write(dir.join("deep").join(text), text).unwrap();
            }
            symlink("../outside", cwd.join("link")).unwrap();
        });
        let is_over = Arc::new(AtomicBool::new(false));
        let (inside, link, stop) = (machine.path("in"), machine.path("link"), Arc::clone(&is_over));
        let thread = std::thread::spawn(move || {
            while !stop.load(Relaxed) {
                renameat_with(CWD, &inside, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        Self { machine, is_over, thread: Some(thread) }
    }

    /// Makes a call as the agent does: evaluates it by its paths and runs it only if they are inside.
    async fn call(&self, name: &str, arguments: Value) -> Option<ToolResult> {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let arguments = ToolArguments::Valid(arguments);
        let call = ToolCall {
            id: CallId::from_position(1, 0),
            provider_id: "1".into(),
            name: name.into(),
            arguments,
        };
        let Machine { tools, workspace, .. } = &self.machine;
        let info = tools.call_info(&call, workspace);
        let (ToolAccess::Reads(paths) | ToolAccess::Writes(paths)) = &info.access else { panic!("{info:?}") };
        if !paths.iter().all(|path| Path::new(path).starts_with(workspace.cwd())) {
            return None;
        }
        let cx = ToolCx { access: &info.access, ..self.machine.cx(&|_| ()) };
        Some(tools.run_call(&call, cx).await)
    }

    /// Makes calls until each way to end was seen often enough; none may show or change anything outside.
    async fn check(&self, name: &str, arguments: impl Fn(usize) -> Value) {
        let before = self.outside();
        let (mut n_done, mut n_asked) = (0, 0);
        for number in 0..TRIES_MAX {
            if number >= TRIES && n_done > 0 && n_asked > 0 {
                break;
            }
            let Some(result) = self.call(name, arguments(number)).await else {
                n_asked += 1;
                continue;
            };
            let said = show(&result);
            n_done += usize::from(said.starts_with("Completed"));
            assert!(!said.contains("outside"), "{name} {number}: {said}");
        }
        assert_eq!(self.outside(), before);
        assert!(n_done > 0 && n_asked > 0, "{name}: {n_done} done, {n_asked} asked");
    }

    fn outside(&self) -> BTreeSet<String> {
        let dir = self.machine.path("../outside");
        let found = [dir.clone(), dir.join("deep")].map(|dir| {
            fs::read_dir(dir).unwrap().map(|entry| {
                let path = entry.unwrap().path();
                format!("{}: {:?}", path.display(), fs::read_to_string(&path).ok())
            })
        });
        found.into_iter().flatten().collect()
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

#[tokio::test]
async fn reads_stay_inside() {
    let swapping = Swapping::start();
    swapping.check("read", |_| json!({"file_path": "in/file"})).await;
}

#[tokio::test]
async fn writes_stay_inside() {
    let swapping = Swapping::start();
    swapping
        .check("write", |number| json!({"file_path": format!("in/deep/new-{}", number % 7), "content": "x"}))
        .await;
    swapping
        .check("write", |number| json!({"file_path": format!("in/deep/{number}/x"), "content": "x"}))
        .await;
}

#[tokio::test]
async fn searches_stay_inside() {
    let swapping = Swapping::start();
    swapping.check("grep", |_| json!({"pattern": "side", "path": "in"})).await;
    swapping.check("glob", |_| json!({"pattern": "*side", "path": "in"})).await;
}

#[tokio::test]
async fn searches_from_above_stay_inside() {
    let swapping = Swapping::start();
    for _ in 0..SEARCHES {
        for (name, pattern) in [("grep", "side"), ("glob", "*side")] {
            let result = swapping.call(name, json!({"pattern": pattern})).await.unwrap();
            assert!(!show(&result).contains("outside"), "{name}: {}", show(&result));
        }
    }
}
