//! The one reader of the terminal: keys, pastes and replies come in the order in which they were read, each with its
//! time.

use std::{
    fs::File,
    io::{self, Read as _},
    os::fd::OwnedFd,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    pipe::pipe,
};
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
};

use super::{InputEvent, TimedInput, TtyIo, parser::InputParser};

/// Events that wait for the loop; then the reader leaves input in the terminal.
const EVENTS_MAX: usize = 256;

/// Bytes read at a time; a paste comes in many reads.
const CHUNK_BYTES: usize = 16 * 1024;

/// Longer than any deadline of the parser.
const LONG_WAIT: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Yields input. Dropping it leaves the terminal to other readers, such as an editor.
#[derive(Debug)]
pub struct InputReader {
    events: mpsc::Receiver<TimedInput>,
    resizes: Signal,
    thread: Option<thread::JoinHandle<()>>,
    /// Closing it ends the thread.
    stop: Option<OwnedFd>,
}

impl InputReader {
    /// Starts to read. Needs a runtime with signals.
    pub fn start(tty: &TtyIo) -> io::Result<Self> {
        let resizes = signal(SignalKind::window_change())?;
        let (stopped, stop) = pipe()?;
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let file = tty.reader();
        let thread = thread::Builder::new()
            .name("terminal input".to_owned())
            .spawn(move || read_events(&file, &stopped, &sender))?;
        Ok(Self { events, resizes, thread: Some(thread), stop: Some(stop) })
    }

    /// Returns the next event; dropping the future loses none. After the terminal is closed, that is the event.
    pub async fn next_event(&mut self) -> TimedInput {
        let event = tokio::select! {
            biased;
            input = self.events.recv() => match input {
                Some(input) => return input,
                None => InputEvent::Closed,
            },
            _ = self.resizes.recv() => InputEvent::Resized,
        };
        TimedInput { event, read_at: Instant::now() }
    }

    /// Returns an event that has already been read.
    pub fn take_ready(&mut self) -> Option<TimedInput> {
        self.events.try_recv().ok()
    }
}

impl Drop for InputReader {
    fn drop(&mut self) {
        self.stop = None;
        // A thread that waits for room in the channel ends.
        self.events.close();
        if let Some(thread) = self.thread.take() {
            // The thread has no result, and one that panicked reads nothing any more.
            drop(thread.join());
        }
    }
}

/// Reads until the terminal or the receiver is gone.
fn read_events(tty: &Arc<File>, stopped: &OwnedFd, events: &mpsc::Sender<TimedInput>) {
    let mut parser = InputParser::default();
    let mut buffer = vec![0; CHUNK_BYTES];
    loop {
        let inputs = match wait_for_input(tty, stopped, parser.deadline()) {
            Ok(InputWait::Stopped) => return,
            Ok(InputWait::Quiet) => parser.flush(Instant::now()),
            Ok(InputWait::Ready) => match (&**tty).read(&mut buffer) {
                Ok(n_bytes) if n_bytes > 0 => parser.push(&buffer[..n_bytes], Instant::now()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Vec::new(),
                Ok(_) | Err(_) => return,
            },
            Err(_) => return,
        };
        for input in inputs {
            if events.blocking_send(input).is_err() {
                return;
            }
        }
    }
}

enum InputWait {
    Ready,
    /// The deadline has passed.
    Quiet,
    Stopped,
}

fn wait_for_input(tty: &File, stopped: &OwnedFd, deadline: Option<Instant>) -> Result<InputWait, Errno> {
    let timeout = deadline.map(|deadline| {
        let left = deadline.saturating_duration_since(Instant::now()) + Duration::from_millis(1);
        Timespec::try_from(left).unwrap_or(LONG_WAIT)
    });
    let mut descriptors = [PollFd::new(tty, PollFlags::IN), PollFd::new(stopped, PollFlags::IN)];
    match poll(&mut descriptors, timeout.as_ref()) {
        Ok(0) | Err(Errno::INTR) => Ok(InputWait::Quiet),
        Ok(_) if !descriptors[1].revents().is_empty() => Ok(InputWait::Stopped),
        Ok(_) => Ok(InputWait::Ready),
        Err(error) => Err(error),
    }
}
