//! The outside of the kernel: time, chance, the disk, and the moment at which the process is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crow_store::{DiskFault, DiskWait, SimulatedDisk};
use crow_testkit::SeededRandom;
use serde_json::Value;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;

use crate::fault::{Fault, FaultPlan};

/// Most waits are short, so that events of different origins meet.
const WAIT_MAX: u64 = 4;

/// Longer than the timeouts for directories and for storing the end of a turn.
const SLOW_WAIT_MAX: u64 = 20_000;

/// Boundaries that a killed process passes at most before it is killed.
const STEPS_BEFORE_KILL_MAX: u64 = 250;

/// Shared by everything outside of the processes of a run, which follow each other.
#[derive(Debug)]
pub(crate) struct World(Mutex<WorldState>);

#[derive(Debug)]
struct WorldState {
    random: SeededRandom,
    faults: FaultPlan,
    /// False in the processes after the faults, in which everything works.
    has_faults: bool,
    /// The boundaries that the process passes before it is killed.
    steps_left: Option<u64>,
    killed: CancellationToken,
    started_at: Option<Instant>,
    journal: Journal,
    n_words: u64,
    child_words: BTreeSet<String>,
}

/// The events of the run of a seed.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    /// Empty unless the trace is recorded.
    pub(crate) trace: Vec<String>,
    pub(crate) records_trace: bool,
    /// A hash of every event.
    pub(crate) fingerprint: u64,
    pub(crate) faults: BTreeMap<Fault, u64>,
    pub(crate) endings: BTreeMap<String, u64>,
    pub(crate) violations: Vec<String>,
}

impl Journal {
    fn add_event(&mut self, at_ms: u128, event: &str) {
        for byte in event.bytes().chain(at_ms.to_le_bytes()) {
            self.fingerprint = (self.fingerprint ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        if self.records_trace {
            self.trace.push(format!("{at_ms:>8} {event}"));
        }
    }
}

impl World {
    pub(crate) fn new(seed: u64, records_trace: bool) -> Arc<Self> {
        let mut random = SeededRandom::new(seed);
        let faults = FaultPlan::draw(&mut random);
        let mut state = WorldState {
            random,
            faults,
            has_faults: true,
            steps_left: None,
            killed: CancellationToken::new(),
            started_at: None,
            journal: Journal { records_trace, ..Journal::default() },
            n_words: 0,
            child_words: BTreeSet::new(),
        };
        let text = state.faults.to_text();
        state.add_event(&format!("faults: {text}"));
        Arc::new(Self(Mutex::new(state)))
    }

    /// Begins the next process, on the current runtime.
    pub(crate) fn begin_process(&self, has_faults: bool) {
        let mut state = self.lock();
        state.has_faults = has_faults;
        state.killed = CancellationToken::new();
        state.started_at = Some(Instant::now());
        state.steps_left = None;
        let WorldState { faults, random, .. } = &mut *state;
        if has_faults && faults.has_fault(Fault::ProcessKilled, random) {
            state.steps_left = Some(state.random.below(STEPS_BEFORE_KILL_MAX));
        }
        state.add_event("process starts");
    }

    /// Ends a process, and with it its time.
    pub(crate) fn end_process(&self) {
        self.lock().started_at = None;
    }

    pub(crate) fn take_journal(&self) -> Journal {
        std::mem::take(&mut self.lock().journal)
    }

    /// Cancelled when the process is killed.
    pub(crate) fn kill_token(&self) -> CancellationToken {
        self.lock().killed.clone()
    }

    /// Passes a boundary of the process: a wait, after which the process may be gone. A call from a killed process
    /// never returns.
    pub(crate) async fn pass_boundary(&self, name: &str) {
        let wait_ms = {
            let mut state = self.lock();
            let is_slow = name == "disk" && state.draws_fault(Fault::DiskSlow);
            let wait_ms = state.random.below(if is_slow { SLOW_WAIT_MAX } else { WAIT_MAX });
            state.add_event(name);
            wait_ms
        };
        if wait_ms > 0 {
            sleep(Duration::from_millis(wait_ms)).await;
        }
        if self.is_dead() {
            std::future::pending::<()>().await;
        }
    }

    /// Counts a step of the process; returns whether it was killed.
    fn is_dead(&self) -> bool {
        let mut state = self.lock();
        if state.steps_left == Some(0) && !state.killed.is_cancelled() {
            state.count_fault(Fault::ProcessKilled);
            state.killed.cancel();
        }
        state.steps_left = state.steps_left.map(|n_left| n_left.saturating_sub(1));
        state.killed.is_cancelled()
    }

    /// Draws whether a fault happens now, and records it.
    pub(crate) fn draws_fault(&self, fault: Fault) -> bool {
        self.lock().draws_fault(fault)
    }

    /// Whether everything works in this process.
    pub(crate) fn is_calm(&self) -> bool {
        !self.lock().has_faults
    }

    pub(crate) fn draw_below(&self, end: u64) -> u64 {
        self.lock().random.below(end)
    }

    pub(crate) fn draw_item<T: Copy>(&self, items: &[T]) -> T {
        self.lock().random.choose(items)
    }

    pub(crate) fn draws_chance(&self, percent: u64) -> bool {
        self.lock().random.is_chosen(percent)
    }

    /// Returns a text that occurs once in the run.
    pub(crate) fn next_words(&self) -> String {
        let mut state = self.lock();
        state.n_words += 1;
        format!("word{} ", state.n_words)
    }

    /// Returns a text for a child to say, see [`World::child_words`].
    pub(crate) fn next_child_words(&self) -> String {
        let words = self.next_words();
        self.lock().child_words.insert(words.trim().to_owned());
        words
    }

    /// Returns what children have said.
    pub(crate) fn child_words(&self) -> BTreeSet<String> {
        self.lock().child_words.clone()
    }

    pub(crate) fn add_event(&self, event: &str) {
        self.lock().add_event(event);
    }

    pub(crate) fn count_ending(&self, ending: &str) {
        *self.lock().journal.endings.entry(ending.to_owned()).or_default() += 1;
    }

    /// Reads JSON that Crow wrote; anything else is a violation.
    pub(crate) fn read_json(&self, text: &[u8]) -> Value {
        serde_json::from_slice(text).unwrap_or_else(|error| {
            self.add_violation(format!("Crow wrote no JSON: {error} in {}", String::from_utf8_lossy(text)));
            Value::Null
        })
    }

    /// Records that an invariant does not hold.
    pub(crate) fn add_violation(&self, violation: String) {
        let mut state = self.lock();
        state.add_event(&format!("VIOLATION {violation}"));
        state.journal.violations.push(violation);
    }

    fn lock(&self) -> MutexGuard<'_, WorldState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WorldState {
    fn draws_fault(&mut self, fault: Fault) -> bool {
        let is_drawn = self.has_faults && self.faults.has_fault(fault, &mut self.random);
        if is_drawn {
            self.count_fault(fault);
        }
        is_drawn
    }

    fn count_fault(&mut self, fault: Fault) {
        self.add_event(&format!("fault {fault:?}"));
        *self.journal.faults.entry(fault).or_default() += 1;
    }

    fn add_event(&mut self, event: &str) {
        let at_ms = self.started_at.map_or(0, |started_at| started_at.elapsed().as_millis());
        self.journal.add_event(at_ms, event);
    }
}

impl SimulatedDisk for World {
    fn wait(&self) -> DiskWait<'_> {
        Box::pin(self.pass_boundary("disk"))
    }

    fn next_fault(&self, is_write: bool) -> Option<DiskFault> {
        let mut state = self.lock();
        state.add_event(if is_write { "write" } else { "read" });
        if state.draws_fault(Fault::DiskLocked) {
            return Some(DiskFault::Locked);
        }
        if is_write && state.draws_fault(Fault::DiskFull) {
            return Some(DiskFault::Full);
        }
        state.draws_fault(Fault::DiskBroken).then_some(DiskFault::Broken)
    }
}
