//! Compares the speed of `grep` with ripgrep on the same trees: `cargo bench -p crow-tools --bench search`.
//!
//! `RG` gives the path of ripgrep; `TREES` gives the directories to search, separated by `:`, instead of this
//! repository and its dependencies' sources.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]
#![expect(
    clippy::disallowed_methods,
    reason = "it starts ripgrep, and is told by the environment what to search"
)]

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use crow_core::{CallId, Confinement, ToolArguments, ToolCall, ToolCallStatus};
use crow_tools::{BuiltinToolConfig, ToolCx, ToolRegistry, Workspace};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// Enough to tell the usual time from an outlier.
const RUNS: usize = 9;

/// Name, pattern and flags of each search.
const SEARCHES: [(&str, &str, &[&str]); 6] = [
    ("rare literal", "ENAMETOOLONG", &[]),
    ("nothing", "zqxjkvbwqzx", &[]),
    ("common word", "return", &[]),
    ("regex", r"fn\s+\w+_with_\w+\(", &[]),
    ("upper and lower case", "unsupportedoperation", &["-i"]),
    ("files with it", "unsafe", &["-l"]),
];

fn main() {
    // `cargo test --benches` only checks that this builds and starts.
    if std::env::args().any(|arg| arg == "--test") {
        return;
    }
    let rg = std::env::var_os("RG").unwrap_or_else(|| "rg".into());
    if Command::new(&rg).arg("--version").stdout(Stdio::null()).status().is_err() {
        println!("there is no ripgrep to compare with; name one with RG");
        return;
    }
    for tree in trees() {
        println!("{}", tree.display());
        println!("{:<24} {:>12} {:>12} {:>8}", "", "grep", "ripgrep", "ratio");
        let machine = Machine::new(tree.clone());
        for (name, pattern, flags) in SEARCHES {
            let arguments = machine.arguments(pattern, flags);
            let (mut ours, mut theirs) = (Vec::new(), Vec::new());
            // Alternating, so that both run under the same conditions.
            for _ in 0..RUNS {
                ours.push(time(|| machine.grep(&arguments)));
                theirs.push(time(|| ripgrep(rg.as_ref(), &tree, pattern, flags)));
            }
            let (ours, theirs) = (median(ours), median(theirs));
            let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
            println!("{name:<24} {:>9.1} ms {:>9.1} ms {ratio:>8.2}", millis(ours), millis(theirs));
        }
    }
}

fn trees() -> Vec<PathBuf> {
    if let Some(trees) = std::env::var_os("TREES") {
        return std::env::split_paths(&trees).collect();
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned();
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let sources = home.map(|home| home.join("registry/src"));
    [Some(crates), sources].into_iter().flatten().filter(|tree| tree.is_dir()).collect()
}

/// The tools of a session.
struct Machine {
    runtime: tokio::runtime::Runtime,
    workspace: Workspace,
    tools: ToolRegistry,
}

impl Machine {
    fn new(tree: PathBuf) -> Self {
        Self {
            runtime: tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap(),
            workspace: Workspace::new(tree, &[], Vec::new()),
            tools: ToolRegistry::with_builtin_tools(BuiltinToolConfig::default()),
        }
    }

    fn arguments(&self, pattern: &str, flags: &[&str]) -> Value {
        let output = if flags.contains(&"-l") { "files" } else { "lines" };
        json!({"pattern": pattern, "ignore_case": flags.contains(&"-i"), "output": output})
    }

    fn grep(&self, arguments: &Value) {
        let arguments = ToolArguments::Valid(arguments.as_object().unwrap().clone());
        let call = ToolCall {
            id: CallId::from_position(1, 0),
            provider_id: "1".into(),
            name: "grep".into(),
            arguments,
        };
        let facets = self.tools.call_info(&call, &self.workspace);
        let cx = ToolCx {
            workspace: &self.workspace,
            editor: None,
            access: &facets.access,
            may_read_written: false,
            call: None,
            confinement: Confinement::Unconfined,
            cancel: &CancellationToken::new(),
            progress: &|_| (),
            undo_recorder: None,
            mcp_session: None,
        };
        let outcome = self.runtime.block_on(self.tools.run_call(&call, cx));
        assert_eq!(outcome.status, ToolCallStatus::Completed, "{:?}", outcome.for_model);
    }
}

/// Searches the same files for the same pattern and discards the output.
fn ripgrep(rg: &Path, tree: &Path, pattern: &str, flags: &[&str]) {
    let mut command = Command::new(rg);
    command.args(["--hidden", "--no-require-git", "--glob", "!.git", "--line-number", "--no-config"]);
    let status = command.args(flags).arg("--").arg(pattern).arg(tree).stdout(Stdio::null()).status();
    assert!(status.unwrap().code().is_some_and(|code| code < 2));
}

fn time(work: impl FnOnce()) -> Duration {
    let began = Instant::now();
    work();
    began.elapsed()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
