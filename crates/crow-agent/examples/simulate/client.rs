//! The simulated client of one process: raw lines in, raw lines out, at virtual times.

mod answers;
mod requests;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use crow_testkit::{Contract, ShownContent};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until};

use self::requests::PendingRequest;
use crate::world::World;

/// An editor that stays open for a day: longer than anything that happens without its user, such as a turn for the mailbox.
const LINGER_TIME: Duration = Duration::from_hours(24);

/// Each cancels a turn that has a call that hangs.
const CANCELS_MAX: u64 = 4;

/// Longer than a turn whose model hangs until its timeouts. A user who has waited longer cancels the turn.
const PATIENCE: Duration = Duration::from_hours(24);

/// The memory of a client about a session, also after its process is gone.
#[derive(Debug, Default)]
pub(crate) struct SessionMemory {
    pub(crate) shown: ShownContent,
    /// The updates since the session was opened by this process.
    pub(crate) updates: Vec<Value>,
    /// Whether this process has opened the session.
    is_open: bool,
    /// The updates of a load that has not ended.
    loading: Option<ShownContent>,
}

pub(crate) type ClientMemory = BTreeMap<String, SessionMemory>;

/// An action of the client at a time.
#[derive(Debug)]
enum Action {
    Send(String),
    Request(PendingRequest),
    StopReading,
    Die,
}

/// The end of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClientEnd {
    Finished,
    Died,
    AgentGone,
    Stuck,
}

/// The plan of a client.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientPlan {
    pub(crate) has_faults: bool,
    pub(crate) n_new_sessions: u64,
    pub(crate) n_prompts: u64,
}

/// The client's ends of the connection.
pub(crate) struct ClientPipes {
    pub(crate) to_agent: mpsc::Sender<io::Result<String>>,
    pub(crate) from_agent: mpsc::Receiver<io::Result<String>>,
}

pub(crate) struct FakeClient<'a> {
    world: Arc<World>,
    to_agent: mpsc::Sender<io::Result<String>>,
    from_agent: mpsc::Receiver<io::Result<String>>,
    memory: &'a mut ClientMemory,
    plan: ClientPlan,
    cwd: String,
    contract: Option<Contract>,
    next_id: u64,
    pending: BTreeMap<u64, PendingRequest>,
    /// Ordered by time, then by the order of their planning.
    schedule: BTreeMap<(Instant, u64), Action>,
    n_scheduled: u64,
    is_reading: bool,
    /// The random IDs of the agent's requests.
    request_ids: Vec<String>,
}

impl<'a> FakeClient<'a> {
    pub(crate) fn new(
        world: Arc<World>,
        pipes: ClientPipes,
        memory: &'a mut ClientMemory,
        plan: ClientPlan,
        cwd: String,
    ) -> Self {
        let ClientPipes { to_agent, from_agent } = pipes;
        for session in memory.values_mut() {
            session.updates.clear();
            session.loading = None;
            session.is_open = false;
        }
        // Checking each line against the schema is slow.
        let contract = world.draws_chance(5).then(Contract::default);
        Self {
            world,
            to_agent,
            from_agent,
            memory,
            plan,
            cwd,
            contract,
            next_id: 0,
            pending: BTreeMap::new(),
            schedule: BTreeMap::new(),
            n_scheduled: 0,
            is_reading: true,
            request_ids: Vec::new(),
        }
    }

    /// Plays the client until it has no more to do, dies, or is stuck.
    pub(crate) async fn run(&mut self) -> ClientEnd {
        self.send_request(PendingRequest::Initialize).await;
        let mut deadline = Instant::now() + PATIENCE;
        let mut n_cancels = 0;
        loop {
            let is_idle = self.pending.is_empty() && self.schedule.is_empty();
            if is_idle {
                deadline = Instant::now() + LINGER_TIME;
            }
            let next_at = self.schedule.keys().next().map_or(deadline, |(at, _)| *at);
            tokio::select! {
                biased;
                line = self.from_agent.recv(), if self.is_reading => match line {
                    Some(Ok(line)) => self.read_line(&line),
                    Some(Err(_)) | None => return ClientEnd::AgentGone,
                },
                () = sleep_until(next_at) => {
                    match self.schedule.pop_first().map(|(_, action)| action) {
                        Some(Action::Send(line)) => self.send_line(line).await,
                        Some(Action::Request(request)) => self.send_request(request).await,
                        Some(Action::StopReading) => self.is_reading = false,
                        Some(Action::Die) => return ClientEnd::Died,
                        None if n_cancels < CANCELS_MAX => {
                            n_cancels += 1;
                            deadline += PATIENCE;
                            self.cancel_prompts().await;
                        }
                        None if is_idle => {
                            self.check_ended_calls();
                            return ClientEnd::Finished;
                        }
                        None => return ClientEnd::Stuck,
                    }
                }
            }
        }
    }

    /// Checks that nothing is shown as running although nothing runs.
    fn check_ended_calls(&self) {
        for (session, memory) in self.memory.iter() {
            let open_calls = memory.shown.open_calls();
            if self.is_reading && memory.is_open && !open_calls.is_empty() {
                self.world.add_violation(format!("{session} is idle with open calls: {open_calls:?}"));
            }
        }
    }

    /// Reads what a process has written before it was killed.
    pub(crate) fn read_rest(&mut self) {
        while self.is_reading
            && let Ok(Ok(line)) = self.from_agent.try_recv()
        {
            self.read_line(&line);
        }
    }

    /// The requests without an answer.
    pub(crate) fn pending_requests(&self) -> String {
        format!("{:?}", self.pending.values().collect::<Vec<_>>())
    }

    /// Replaces what differs between two runs of a seed.
    fn mask_line(&self, line: &str) -> String {
        // The only line with the real time.
        if line.contains("\"updatedAt\"") {
            return "the time of the last change".to_owned();
        }
        if let Some((_, panic)) = line.split_once("unexpectedly: task ") {
            return format!(
                "a panic of the task {}",
                panic.trim_start_matches(|digit: char| digit.is_ascii_digit())
            );
        }
        let mut line = line.replace(&self.cwd, "$DIR");
        for (number, id) in self.request_ids.iter().enumerate() {
            if line.contains(id.as_str()) {
                line = line.replace(id.as_str(), &format!("request-{number}"));
            }
        }
        line
    }

    fn plan_action(&mut self, after_ms: u64, action: Action) {
        self.n_scheduled += 1;
        let at = Instant::now() + Duration::from_millis(after_ms);
        self.schedule.insert((at, self.n_scheduled), action);
    }

    async fn send_line(&mut self, line: String) {
        let event = format!("> {}", self.mask_line(&line));
        self.world.add_event(&event);
        if let Some(contract) = &mut self.contract {
            contract.record_client_line(&line);
        }
        // An agent that is gone is noticed when reading.
        drop(self.to_agent.send(Ok(line)).await);
    }

    fn read_line(&mut self, line: &str) {
        let mut message = match self.contract.as_mut().map(|contract| contract.check_agent_line(line)) {
            Some(Ok(message)) => message,
            Some(Err(violation)) => {
                self.world.add_violation(format!("the agent broke the protocol: {violation} in {line}"));
                self.world.read_json(line.as_bytes())
            }
            None => self.world.read_json(line.as_bytes()),
        };
        if let (Some(id), true) = (message["id"].as_str(), message["method"].is_string()) {
            self.request_ids.push(id.to_owned());
        }
        let event = format!("< {}", self.mask_line(line));
        self.world.add_event(&event);
        match (message["method"].as_str(), message["id"].as_u64()) {
            (Some("session/update"), _) => self.read_update(message["params"].take()),
            (Some("session/request_permission"), _) => self.plan_permission_answer(&message),
            (Some(_), _) if message.get("id").is_some() => {
                let error = json!({"code": -32601, "message": "not found"});
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                self.plan_action(0, Action::Send(answer.to_string()));
            }
            (None, Some(id)) => self.read_response(id, &message),
            (Some(_) | None, _) => {}
        }
    }

    fn read_update(&mut self, mut params: Value) {
        let update = params["update"].take();
        let session = params["sessionId"].as_str().unwrap_or_default();
        let memory = self.memory.entry(session.to_owned()).or_default();
        match &mut memory.loading {
            Some(loading) => loading.add_update(&update),
            None => memory.shown.add_update(&update),
        }
        memory.updates.push(update);
    }
}
