//! Kills workers and servers at their times, on a thread of its own.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crow_core::FarmAddress;

use crate::options::FleetOptions;
use crate::world::FleetWorld;

/// Later than any run.
const NEVER: Duration = Duration::from_secs(1_000_000);

/// Processes that were killed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KillCounts {
    pub(crate) n_workers: u64,
    pub(crate) n_servers: u64,
}

/// A running killer, which owns the world.
pub(crate) struct Killer {
    farm: FarmAddress,
    stop: Sender<()>,
    thread: JoinHandle<(FleetWorld, KillCounts)>,
}

/// The times of the next kills.
struct KillTimes {
    worker: Instant,
    server: Instant,
    /// A killed server with the time at which it is started again.
    resume: Option<(Instant, usize)>,
}

impl Killer {
    pub(crate) fn start(options: &FleetOptions, mut world: FleetWorld) -> Self {
        let (farm, (stop, stopped)) = (world.farm(), channel());
        let (worker_interval, server_interval) = (options.worker_interval, options.server_interval);
        let mut random = options.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let thread = std::thread::spawn(move || {
            let (begin, mut kills) = (Instant::now(), KillCounts::default());
            let mut times = KillTimes {
                worker: begin + worker_interval.unwrap_or(NEVER),
                server: begin + server_interval.unwrap_or(NEVER),
                resume: None,
            };
            loop {
                let next = times.worker.min(times.server);
                let next = times.resume.map_or(next, |(resume, _)| next.min(resume));
                let wait = next.saturating_duration_since(Instant::now());
                if !matches!(stopped.recv_timeout(wait), Err(RecvTimeoutError::Timeout)) {
                    break;
                }
                // Xorshift.
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let now = Instant::now();
                if let Some((_, index)) = times.resume.take_if(|(resume, _)| *resume <= now) {
                    world.resume_server(index);
                } else if times.server <= now {
                    let interval = server_interval.unwrap_or(NEVER);
                    times.server = now + interval;
                    // Never two at once: a cluster of three needs two.
                    times.resume = Some((now + interval / 2, world.kill_server(random >> 8)));
                    kills.n_servers += 1;
                } else if times.worker <= now {
                    times.worker = now + worker_interval.unwrap_or(NEVER);
                    world.replace_worker(random >> 8);
                    kills.n_workers += 1;
                }
            }
            if let Some((_, index)) = times.resume {
                world.resume_server(index);
            }
            (world, kills)
        });
        Self { farm, stop, thread }
    }

    /// The address of the queue.
    pub(crate) fn farm(&self) -> &FarmAddress {
        &self.farm
    }

    /// Stops it; returns the world, with all servers running.
    pub(crate) fn finish(self) -> (FleetWorld, KillCounts) {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap()
    }
}
