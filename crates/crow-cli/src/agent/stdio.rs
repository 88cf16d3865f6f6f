//! The stdin and stdout of an agent, which ends although its client no longer reads: a thread that writes to a full pipe
//! cannot be stopped, only left behind.

#[cfg(test)]
mod tests;

use std::{
    convert::Infallible,
    io::{self, Read, Write},
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crow_acp::LineTransport;
use tokio_util::sync::CancellationToken;

/// Time without progress after which a client that has ended the agent is considered to read no more. A client that is
/// busy, or behind a slow network, pauses for less; and a process that its client has ended should not stay for long.
const STALL_MAX: Duration = Duration::from_secs(3);

/// Bytes of one write. Only a complete write counts as progress, so even a slow reader must take as much in time; and it
/// is large enough for the writes of a normal turn.
const PIECE_BYTES_MAX: usize = 16 * 1024;

/// The progress of the output once its end is due.
#[derive(Debug, Default)]
pub(super) struct OutputWatch {
    times: Mutex<OutputTimes>,
    input_ended: CancellationToken,
}

#[derive(Debug, Default)]
struct OutputTimes {
    last_write: Option<Instant>,
    /// The time since when the output should end.
    end_due: Option<Instant>,
}

impl OutputTimes {
    /// Returns the time without progress.
    fn stalled_for(&self, now: Instant) -> Duration {
        // `None` is less than any time.
        let since = self.end_due.max(self.last_write);
        since.map_or(Duration::ZERO, |since| now.saturating_duration_since(since))
    }
}

impl OutputWatch {
    fn on_write(&self) {
        self.times.lock().unwrap_or_else(PoisonError::into_inner).last_write = Some(Instant::now());
    }

    fn on_input_end(&self) {
        self.expect_end();
        self.input_ended.cancel();
    }

    /// Counts time without progress from now on, unless that has begun.
    fn expect_end(&self) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        times.end_due.get_or_insert_with(Instant::now);
    }

    /// Returns the time left for the next progress.
    fn time_left(&self) -> Duration {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        STALL_MAX.saturating_sub(times.stalled_for(Instant::now()))
    }

    /// Waits until the client has closed stdin and then read nothing for a while.
    async fn wait_for_stall(&self) {
        self.input_ended.cancelled().await;
        loop {
            let time_left = self.time_left();
            if time_left.is_zero() {
                return;
            }
            tokio::time::sleep(time_left).await;
        }
    }

    /// Waits until `stop_signal` completes, or the client has closed stdin and then read nothing for a while.
    pub(super) async fn wait_for_stop(&self, stop_signal: impl Future<Output = ()>) {
        tokio::select! {
            biased;
            () = stop_signal => self.expect_end(),
            () = self.wait_for_stall() => {}
        }
    }
}

/// An input that reports its end.
struct WatchedInput<R> {
    input: R,
    watch: Arc<OutputWatch>,
}

impl<R: Read> Read for WatchedInput<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let n_read = self.input.read(bytes)?;
        if n_read == 0 && !bytes.is_empty() {
            self.watch.on_input_end();
        }
        Ok(n_read)
    }
}

/// An output that reports its progress, and by being dropped its end.
struct WatchedOutput<W> {
    output: W,
    watch: Arc<OutputWatch>,
    _end_sender: SyncSender<Infallible>,
}

impl<W: Write> Write for WatchedOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n_written = self.output.write(bytes.get(..PIECE_BYTES_MAX).unwrap_or(bytes))?;
        self.watch.on_write();
        Ok(n_written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()?;
        self.watch.on_write();
        Ok(())
    }
}

/// The thread that writes the output.
pub(super) struct OutputWriter {
    thread: JoinHandle<()>,
    watch: Arc<OutputWatch>,
    end_receiver: Receiver<Infallible>,
}

impl OutputWriter {
    /// Returns the progress of the output.
    pub(super) fn watch(&self) -> Arc<OutputWatch> {
        self.watch.clone()
    }

    /// Waits until everything is written, as long as that makes progress. False if something was not written.
    pub(super) fn finish(self) -> bool {
        self.watch.expect_end();
        loop {
            let time_left = self.watch.time_left();
            match self.end_receiver.recv_timeout(time_left) {
                Ok(never) => match never {},
                Err(RecvTimeoutError::Disconnected) => return self.thread.join().is_ok(),
                Err(RecvTimeoutError::Timeout) if self.watch.time_left().is_zero() => return false,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

/// Creates the agent's end of a connection over stdin and stdout.
pub(super) fn open_stdio() -> io::Result<(LineTransport, OutputWriter)> {
    let watch = Arc::<OutputWatch>::default();
    let (end_sender, end_receiver) = sync_channel(0);
    let input = WatchedInput { input: io::stdin(), watch: watch.clone() };
    let output = WatchedOutput { output: io::stdout(), watch: watch.clone(), _end_sender: end_sender };
    let (transport, thread) = crow_acp::stdio_transport(input, output)?;
    Ok((transport, OutputWriter { thread, watch, end_receiver }))
}
