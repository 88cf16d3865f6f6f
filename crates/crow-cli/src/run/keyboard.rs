//! Input lines, grouped by arrival time. Knows nothing of questions and prompts.
//!
//! A thread waits for input. To know what has been typed until now, callers read pending input themselves too, so that
//! nothing stays in the kernel's buffer.

use std::{
    collections::VecDeque,
    fs::File,
    io::{self, IsTerminal, Read as _},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

use tokio::sync::Notify;

/// Limit for queued input: more than a user types; a pipe blocks.
const WAITING_BYTES_MAX: usize = 1024 * 1024;

/// Overflows dropped before a question.
const OVERFLOWS_MAX: usize = 64;

/// Bytes read at a time: the kernel's limit for a line.
const CHUNK_BYTES: usize = 4096;

/// Input this soon after other input was not typed in reaction to anything between them.
const TYPED_GAP: Duration = Duration::from_millis(20);

/// The same after several lines at once, which are a paste: terminals and networks deliver a paste in pieces.
const PASTED_GAP: Duration = Duration::from_millis(100);

/// A line, or `None` at the end of input; on a terminal more may follow the end.
pub(super) type InputLine = io::Result<Option<String>>;

#[derive(Debug)]
pub(super) struct ArrivedLine {
    pub(super) line: InputLine,
    pub(super) arrived: Instant,
    /// Lines that arrived together have the same number; later ones have a higher one.
    pub(super) burst: u64,
}

/// Input that was typed and not yet taken.
#[derive(Debug, Default)]
pub(super) struct InputQueue {
    pub(super) arrivals: VecDeque<ArrivedLine>,
    n_bytes: usize,
    partial_line: Vec<u8>,
    burst: u64,
    n_lines_of_burst: usize,
    last_at: Option<Instant>,
    is_over: bool,
}

impl InputQueue {
    /// Number of the latest burst.
    pub(super) fn burst(&self) -> u64 {
        self.burst
    }

    /// Returns when the next input will count as a new burst.
    pub(super) fn quiet_at(&self) -> Option<Instant> {
        let quiet_time = if self.n_lines_of_burst > 1 { PASTED_GAP } else { TYPED_GAP };
        self.last_at.map(|last_at| last_at + quiet_time)
    }

    pub(super) fn take_line(&mut self, index: usize) -> Option<InputLine> {
        let arrival = self.arrivals.remove(index)?;
        self.n_bytes = self.n_bytes.saturating_sub(line_weight(&arrival.line));
        Some(arrival.line)
    }

    /// Whether the input has ended and is used up.
    pub(super) fn is_over(&self) -> bool {
        self.is_over && self.arrivals.is_empty()
    }

    /// Drops all input if the queue is full; returns whether it did.
    pub(super) fn drop_overflow(&mut self) -> bool {
        let is_full = self.is_full();
        if is_full {
            self.arrivals.clear();
            self.partial_line.clear();
            self.n_bytes = 0;
        }
        is_full
    }

    fn is_full(&self) -> bool {
        self.n_bytes + self.partial_line.len() >= WAITING_BYTES_MAX
    }

    /// Adds bytes read at a given time; an empty slice is the end of input, which more may follow on a terminal that is
    /// still open.
    fn add_bytes(&mut self, bytes: &[u8], arrived: Instant, is_open_terminal: bool) {
        if self.quiet_at().is_none_or(|quiet_at| arrived >= quiet_at) {
            self.burst += 1;
            self.n_lines_of_burst = 0;
        }
        self.last_at = Some(arrived);
        if bytes.is_empty() {
            if !self.partial_line.is_empty() {
                self.end_line(arrived);
            } else {
                self.push(Ok(None), arrived);
                self.is_over = !is_open_terminal;
            }
        }
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.partial_line.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                self.end_line(arrived);
            }
        }
    }

    fn end_line(&mut self, arrived: Instant) {
        let bytes = std::mem::take(&mut self.partial_line);
        let line = String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned();
        self.n_lines_of_burst += 1;
        self.push(Ok(Some(line)), arrived);
    }

    fn push(&mut self, line: InputLine, arrived: Instant) {
        self.n_bytes += line_weight(&line);
        self.arrivals.push_back(ArrivedLine { line, arrived, burst: self.burst });
    }
}

/// An empty line counts too.
fn line_weight(line: &InputLine) -> usize {
    line.as_ref().ok().and_then(Option::as_ref).map_or(0, String::len) + 1
}

/// Stdin, usually the keyboard.
#[derive(Debug)]
pub(super) struct KeyboardInput(Arc<KeyboardShared>);

#[derive(Debug)]
struct KeyboardShared {
    input: File,
    is_terminal: bool,
    queue: Mutex<InputQueue>,
    /// Signals new input.
    arrived: Notify,
    /// Signals free space.
    removed: Condvar,
}

impl KeyboardInput {
    /// Starts to read stdin.
    pub(super) fn open() -> io::Result<Self> {
        let shared = Arc::new(KeyboardShared::new(crow_process::duplicate_stdin()?));
        let reader = shared.clone();
        // Never joined: it waits for input and ends with the process.
        thread::Builder::new().name("keyboard".into()).spawn(move || reader.read_until_end())?;
        Ok(Self(shared))
    }

    /// Drops pending input if the queue overflows; returns whether it did.
    pub(super) fn drop_overflow(&self) -> bool {
        let mut is_dropped = false;
        // As much again may arrive meanwhile; an endless stream is ignored after this.
        for _ in 0..OVERFLOWS_MAX {
            if !self.read_pending().drop_overflow() {
                break;
            }
            is_dropped = true;
        }
        self.0.removed.notify_all();
        is_dropped
    }

    /// Reads pending input and drops an unfinished line: the rest of it will be typed for something else.
    pub(super) fn drop_unfinished_line(&self) -> io::Result<MutexGuard<'_, InputQueue>> {
        let mut queue = self.read_pending();
        if self.0.is_terminal {
            // A terminal buffers the line being typed.
            crow_process::discard_input(&self.0.input)?;
            queue.partial_line.clear();
        }
        Ok(queue)
    }

    /// Returns the queue after reading all pending input.
    pub(super) fn read_pending(&self) -> MutexGuard<'_, InputQueue> {
        let mut queue = self.0.lock_queue();
        self.0.read_available(&mut queue);
        queue
    }

    /// Waits for new input, including input since the last wait.
    pub(super) async fn wait_for_input(&self) {
        self.0.arrived.notified().await;
    }

    pub(super) fn take_line(&self, queue: &mut InputQueue, index: usize) -> Option<InputLine> {
        let line = queue.take_line(index);
        self.0.removed.notify_all();
        line
    }
}

impl KeyboardShared {
    fn new(input: File) -> Self {
        Self {
            is_terminal: input.is_terminal(),
            input,
            queue: Mutex::default(),
            arrived: Notify::new(),
            removed: Condvar::new(),
        }
    }

    fn lock_queue(&self) -> MutexGuard<'_, InputQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read_until_end(&self) {
        loop {
            let ready = crow_process::wait_for_input(&self.input);
            let mut queue = self.lock_queue();
            match ready {
                Ok(()) => self.read_available(&mut queue),
                Err(error) => self.record_error(&mut queue, error),
            }
            while queue.is_full() && !queue.is_over {
                queue = self.removed.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            if queue.is_over {
                return;
            }
        }
    }

    /// Reads pending input while there is space.
    fn read_available(&self, queue: &mut InputQueue) {
        let mut chunk = [0; CHUNK_BYTES];
        while !queue.is_over && !queue.is_full() {
            match crow_process::has_input(&self.input) {
                Ok(true) => {}
                Ok(false) => break,
                Err(error) => return self.record_error(queue, error),
            }
            match (&self.input).read(&mut chunk).and_then(|n_bytes| Ok((n_bytes, self.is_open_terminal()?))) {
                Ok((n_bytes, is_open)) => queue.add_bytes(&chunk[..n_bytes], Instant::now(), is_open),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.record_error(queue, error),
            }
            self.arrived.notify_one();
        }
    }

    /// Whether input may follow its end. Reading from a terminal that was closed ends at once, without end.
    fn is_open_terminal(&self) -> io::Result<bool> {
        Ok(self.is_terminal && !crow_process::is_hung_up(&self.input)?)
    }

    fn record_error(&self, queue: &mut InputQueue, error: io::Error) {
        queue.push(Err(error), Instant::now());
        queue.is_over = true;
        self.arrived.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds pieces, each with a delay in milliseconds after the one before; returns lines with their bursts.
    fn bursts(pieces: &[(u64, &str)]) -> Vec<(String, u64)> {
        let (mut queue, mut at) = (InputQueue::default(), Instant::now());
        for (later, piece) in pieces {
            at += Duration::from_millis(*later);
            queue.add_bytes(piece.as_bytes(), at, true);
        }
        let lines = queue.arrivals.into_iter();
        let text = |line: InputLine| line.unwrap().unwrap_or_else(|| "(end)".to_owned());
        lines.map(|arrival| (text(arrival.line), arrival.burst)).collect()
    }

    #[track_caller]
    fn check(pieces: &[(u64, &str)], expected: &[(&str, u64)]) {
        let expected: Vec<_> = expected.iter().map(|(line, burst)| ((*line).to_owned(), *burst)).collect();
        assert_eq!(bursts(pieces), expected);
    }

    #[test]
    fn simultaneous_input_is_one_burst() {
        check(
            &[(0, "one\ntwo\n"), (5, "three\n"), (80, "four\n")],
            &[("one", 1), ("two", 1), ("three", 1), ("four", 1)],
        );
        check(&[(0, "one\n"), (5, "two\n"), (200, "three\n")], &[("one", 1), ("two", 1), ("three", 2)]);
        check(&[(0, "one\n"), (30, "two\n"), (30, "three\n")], &[("one", 1), ("two", 2), ("three", 3)]);
    }

    #[test]
    fn line_may_arrive_in_pieces_and_without_its_end() {
        check(&[(0, "on"), (500, "e\ntw"), (500, "")], &[("one", 2), ("tw", 3)]);
        check(&[(0, "a\r\n"), (500, ""), (500, "\n")], &[("a", 1), ("(end)", 2), ("", 3)]);
    }

    #[test]
    fn closed_terminal_is_the_end_of_input() {
        let terminal = nix::pty::openpty(None, None).unwrap();
        let keyboard = KeyboardShared::new(File::from(terminal.slave));
        drop(terminal.master);
        let mut queue = keyboard.lock_queue();
        keyboard.read_available(&mut queue);
        assert!(matches!(queue.take_line(0), Some(Ok(None))));
        assert!(queue.is_over());
    }

    #[test]
    fn queue_is_limited_in_size() {
        let mut queue = InputQueue::default();
        let line = format!("{}\n", "x".repeat(CHUNK_BYTES - 1));
        let n_lines = (0..1000).take_while(|_| {
            queue.add_bytes(line.as_bytes(), Instant::now(), true);
            !queue.is_full()
        });
        assert_eq!(n_lines.count(), WAITING_BYTES_MAX / CHUNK_BYTES - 1);
        assert!(queue.take_line(0).is_some());
        assert!(!queue.is_full(), "there is room again");
    }
}
