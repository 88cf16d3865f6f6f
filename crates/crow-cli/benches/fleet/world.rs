//! Servers, workers and their model.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use crow_core::{FarmAddress, NatsCredentials, NatsServer as ServerAddress};
use crow_testkit::client::TestHome;
use crow_testkit::{NatsCluster, NatsServer};
use serde_json::{Value, json};

use crate::model::{Model, Plan};
use crate::options::FleetOptions;

/// The queue of all tasks.
const QUEUE: &str = "fleet";

/// One server, or three with every message on each.
enum TestServers {
    One(NatsServer),
    Cluster(NatsCluster),
}

/// Begun conversations of each task.
type BegunTasks = Arc<Mutex<BTreeMap<String, usize>>>;

/// Everything that runs.
pub(crate) struct FleetWorld {
    servers: TestServers,
    workers: Vec<Child>,
    n_started: usize,
    n_slots: usize,
    /// One for all workers, or one for each.
    homes: Vec<TestHome>,
    postgresql: Option<String>,
    begun: BegunTasks,
    model: Model,
}

impl FleetWorld {
    /// Starts it; `None` where there is no server program.
    pub(crate) fn start(options: &FleetOptions) -> Option<Self> {
        let servers = match options.has_cluster {
            true => TestServers::Cluster(NatsCluster::start()?),
            false => TestServers::One(NatsServer::start()?),
        };
        let (model, begun) = (Model::start(), BegunTasks::default());
        let (n_calls, counted) = (options.n_calls, begun.clone());
        model.plan(Plan::Chosen(Arc::new(move |request| choose_answer(request, n_calls, &counted))));
        let mut world = Self {
            servers,
            workers: Vec::new(),
            n_started: 0,
            n_slots: options.n_slots,
            homes: Vec::new(),
            postgresql: options.postgresql.clone(),
            begun,
            model,
        };
        for _ in 0..options.n_workers {
            let worker = world.start_worker();
            world.workers.push(worker);
        }
        Some(world)
    }

    /// The address of the queue.
    pub(crate) fn farm(&self) -> FarmAddress {
        let server =
            ServerAddress { urls: self.url(), credentials: NatsCredentials::None, tls_ca_file: None };
        FarmAddress { server, queue: QUEUE.to_owned(), parent_name: "bench".to_owned() }
    }

    fn url(&self) -> String {
        match &self.servers {
            TestServers::One(server) => server.url(),
            TestServers::Cluster(cluster) => cluster.url(),
        }
    }

    /// Returns the home of the next worker.
    fn choose_home(&mut self) -> PathBuf {
        if self.homes.is_empty() || self.postgresql.is_some() {
            let home = TestHome::new(&format!("http://127.0.0.1:{}/v1", self.model.port()));
            if let Some(uri) = &self.postgresql {
                home.add_config(&format!("db_uri: {uri:?}"));
            }
            self.homes.push(home);
        }
        self.homes.last().map(TestHome::home).unwrap()
    }

    /// Starts a worker and waits until it has its queue.
    fn start_worker(&mut self) -> Child {
        let home = self.choose_home();
        let replicas = if matches!(self.servers, TestServers::Cluster(_)) { "3" } else { "1" };
        self.n_started += 1;
        let mut command = Command::new(PathBuf::from(env!("CARGO_BIN_EXE_crow-cli")));
        command
            .args(["worker", "--nats", &self.url(), "--queue", QUEUE, "--mode", "auto"])
            .args(["--name", &format!("w{}", self.n_started), "--slots", &self.n_slots.to_string()])
            .args(["--replicas", replicas])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", home)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut worker = command.spawn().unwrap();
        let mut lines = BufReader::new(worker.stdout.take().unwrap()).lines();
        // It waits for elections itself, and says so.
        let is_ready = lines.any(|line| line.unwrap().starts_with("worker "));
        assert!(is_ready, "the worker could not use its queue");
        // Its pipe must not become full.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        worker
    }

    /// Kills a worker and starts another one.
    pub(crate) fn replace_worker(&mut self, number: u64) {
        let index = number as usize % self.workers.len();
        self.workers[index].kill().unwrap();
        self.workers[index].wait().unwrap();
        self.workers[index] = self.start_worker();
    }

    /// Kills a server; returns its index.
    pub(crate) fn kill_server(&mut self, number: u64) -> usize {
        match &mut self.servers {
            TestServers::One(server) => {
                server.kill();
                0
            }
            TestServers::Cluster(cluster) => {
                let index = number as usize % cluster.n_servers();
                cluster.kill(index);
                index
            }
        }
    }

    pub(crate) fn resume_server(&mut self, index: usize) {
        match &mut self.servers {
            TestServers::One(server) => server.resume(),
            TestServers::Cluster(cluster) => cluster.resume(index),
        }
    }

    /// The number of messages that are left in the queue.
    pub(crate) fn n_left(&self) -> u64 {
        match &self.servers {
            TestServers::One(server) => server.stream_len("CROW_TASKS"),
            TestServers::Cluster(cluster) => cluster.stream_len("CROW_TASKS"),
        }
    }

    /// Returns the number of times that each task was begun.
    pub(crate) fn begun(&self) -> BTreeMap<String, usize> {
        self.begun.lock().unwrap().clone()
    }
}

impl Drop for FleetWorld {
    fn drop(&mut self) {
        for worker in &mut self.workers {
            // One that has exited cannot be killed.
            let _ = worker.kill();
            let _ = worker.wait();
        }
    }
}

/// Returns the next call of a task, or its end.
fn choose_answer(request: &Value, n_calls: usize, begun: &BegunTasks) -> Plan {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let n_results = messages.iter().filter(|message| message["role"] == "tool").count();
    if n_results == 0 {
        let prompt = messages.iter().find(|message| message["role"] == "user");
        let prompt = prompt.map(|prompt| prompt["content"].to_string()).unwrap_or_default();
        let task = prompt.split_once("task ").map(|(_, rest)| rest.chars().take_while(char::is_ascii_digit));
        let task: String = task.map(Iterator::collect).unwrap_or_default();
        *begun.lock().unwrap().entry(task).or_default() += 1;
    }
    if n_results >= n_calls {
        return Plan::Text("Done.");
    }
    Plan::Calls(vec![("glob", json!({ "pattern": format!("*.{n_results}") }))])
}
