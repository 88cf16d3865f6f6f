//! The run of one seed: processes with faults, one after the other, then two without.

use std::collections::BTreeMap;
use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crow_store::MemoryDatabase;
use crow_testkit::replay::render_updates;
use crow_tools::ToolRegistry;
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::{Builder, Handle};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::client::{ClientEnd, ClientMemory, ClientPlan, FakeClient};
use crate::panics;
use crate::process::{Machine, start_agent};
use crate::random_bytes::seed_random_bytes;
use crate::stored::check_stored_sessions;
use crate::tools::empty_registry;
use crate::world::{Journal, World};

/// Longer than anything that a process does in the background after its client is gone.
const REST_TIME: Duration = Duration::from_hours(2);

/// Processes with faults at most.
const FAULTY_PROCESSES_MAX: u64 = 3;

/// A place in memory, if the system has it, for the files that a seed writes: a disk would wait for each of them.
const MEMORY_DIRECTORY: &str = "/dev/shm";

/// The name of the directory with the files of a seed.
const SEED_FILES: &str = "seed";

/// The parts that are used again for each seed.
pub(crate) struct SeedRunner {
    /// Always empty. On a disk, because it is asked for many files that it does not have, and a file system in memory
    /// forgets that it does not have them.
    project: TempDir,
    /// Has the directory with the files of a seed.
    memory: TempDir,
    database: MemoryDatabase,
    no_tools: ToolRegistry,
}

impl SeedRunner {
    pub(crate) fn create() -> io::Result<Self> {
        let project = tempfile::tempdir()?;
        let memory = tempfile::tempdir_in(MEMORY_DIRECTORY).or_else(|_| tempfile::tempdir())?;
        let database = MemoryDatabase::create(memory.path().join(SEED_FILES).join("drafts"));
        let database = database.map_err(io::Error::other)?;
        let mut runner = Self { project, memory, database, no_tools: empty_registry() };
        // Hash maps that a process makes once take keys from the first seed's: without this run, it would run in another
        // way than after others.
        runner.run_seed(0, false)?;
        Ok(runner)
    }

    /// Runs one seed, with an empty disk, on a thread of its own: the keys of hash maps are drawn once for each thread.
    pub(crate) fn run_seed(&mut self, seed: u64, records_trace: bool) -> io::Result<Journal> {
        let run = || {
            seed_random_bytes(seed);
            self.run_on_this_thread(seed, records_trace)
        };
        thread::scope(|scope| scope.spawn(run).join()).unwrap_or_else(|panic| resume_unwind(panic))
    }

    fn run_on_this_thread(&mut self, seed: u64, records_trace: bool) -> io::Result<Journal> {
        let files = self.memory.path().join(SEED_FILES);
        std::fs::create_dir(&files)?;
        self.database.clear().map_err(io::Error::other)?;
        let (database, no_tools) = (&self.database, &self.no_tools);
        let machine = Machine { project: self.project.path(), config_dir: &files, database, no_tools };
        let journal = run_processes(&machine, &World::new(seed, records_trace))?;
        std::fs::remove_dir_all(files)?;
        match std::fs::read_dir(self.project.path())?.next() {
            None => Ok(journal),
            Some(entry) => Err(io::Error::other(format!("the next seed would find {:?}", entry?.path()))),
        }
    }
}

fn run_processes(machine: &Machine<'_>, world: &Arc<World>) -> io::Result<Journal> {
    let mut memory = ClientMemory::new();
    for index in 0..=world.draw_below(FAULTY_PROCESSES_MAX) {
        let opens_more = index == 0 || world.draws_chance(30);
        let n_new_sessions = if opens_more { 1 + world.draw_below(2) } else { 0 };
        let plan = ClientPlan { has_faults: true, n_new_sessions, n_prompts: 1 + world.draw_below(3) };
        run_process(machine, world, &mut memory, plan)?;
    }
    let plan = ClientPlan { has_faults: false, n_new_sessions: 0, n_prompts: 1 };
    run_process(machine, world, &mut memory, plan)?;
    let live = render_sessions(&memory);
    run_process(machine, world, &mut memory, ClientPlan { n_prompts: 0, ..plan })?;
    check_replay(world, &live, &render_sessions(&memory));
    for panic in panics::take_panics() {
        world.add_violation(format!("a task panicked: {panic}"));
    }
    Ok(world.take_journal())
}

fn render_sessions(memory: &ClientMemory) -> BTreeMap<String, String> {
    let render = |updates: &[Value]| render_updates(updates.iter().filter(|update| !is_notice(update)));
    memory.iter().map(|(id, session)| (id.clone(), render(&session.updates))).collect()
}

/// Notices are thoughts without a message for a client that does not know them.
fn is_notice(update: &Value) -> bool {
    update["sessionUpdate"] == "agent_thought_chunk" && update["messageId"].is_null()
}

fn check_replay(world: &World, live: &BTreeMap<String, String>, replayed: &BTreeMap<String, String>) {
    for (session, live) in live {
        let replayed = replayed.get(session).map(String::as_str).unwrap_or_default();
        if live != replayed {
            let violation =
                format!("the replay of {session} differs from what was seen live:\n{replayed}was:\n{live}");
            world.add_violation(violation);
        }
    }
}

/// Runs a process until its client has finished or it is killed.
fn run_process(
    machine: &Machine<'_>,
    world: &Arc<World>,
    memory: &mut ClientMemory,
    plan: ClientPlan,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build()?;
    runtime.block_on(async {
        world.begin_process(plan.has_faults);
        let (pipes, served) = start_agent(machine, world);
        let cwd = machine.project.display().to_string();
        let mut client = FakeClient::new(world.clone(), pipes, memory, plan, cwd);
        let killed = world.kill_token();
        let Some(end) = killed.run_until_cancelled(client.run()).await else {
            client.read_rest();
            return;
        };
        world.add_event(&format!("client: {end:?}"));
        match end {
            ClientEnd::Finished | ClientEnd::Died => {}
            ClientEnd::AgentGone => world.add_violation("the agent ended before its client".to_owned()),
            ClientEnd::Stuck => {
                world.add_violation(format!("requests are not answered: {}", client.pending_requests()));
            }
        }
        drop(client);
        let is_last = !plan.has_faults && plan.n_prompts == 0;
        killed.run_until_cancelled(check_end(machine, world, served, is_last)).await;
    });
    world.end_process();
    Ok(())
}

/// Checks what a process leaves behind.
async fn check_end(machine: &Machine<'_>, world: &Arc<World>, served: JoinHandle<bool>, is_last: bool) {
    match timeout(REST_TIME, served).await {
        Ok(Ok(true)) => {}
        Ok(ended) => world.add_violation(format!("the agent did not end well: {ended:?}")),
        Err(_) => world.add_violation("the agent does not end without its client".to_owned()),
    }
    sleep(REST_TIME).await;
    let n_tasks = Handle::current().metrics().num_alive_tasks();
    if n_tasks > 0 {
        world.add_violation(format!("{n_tasks} tasks are left"));
    }
    if is_last {
        check_stored_sessions(machine, world).await;
    }
}
