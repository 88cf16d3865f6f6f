//! The one reader of the terminal: keys, pastes and replies come in the order in which they were read, each with its
//! time.

use std::{
    fs::File,
    io::{self, Read as _},
    sync::Arc,
    thread,
    time::Instant,
};

use crow_process::{InputStop, InputStopper, InputWait, WindowResizes, input_stop, wait_for_input_or_stop};
use tokio::sync::mpsc;

use super::{InputEvent, TimedInput, TtyIo, parser::InputParser};

/// Events that wait for the loop; then the reader leaves input in the terminal.
const EVENTS_MAX: usize = 256;

/// Bytes read at a time; a paste comes in many reads.
const CHUNK_BYTES: usize = 16 * 1024;

/// Yields input. Dropping it leaves the terminal to other readers, such as an editor.
#[derive(Debug)]
pub struct InputReader {
    events: mpsc::Receiver<TimedInput>,
    resizes: WindowResizes,
    thread: Option<thread::JoinHandle<()>>,
    /// Dropping it ends the thread.
    stop: Option<InputStopper>,
}

impl InputReader {
    /// Starts to read. Needs a runtime with signals.
    pub fn start(tty: &TtyIo) -> io::Result<Self> {
        let resizes = WindowResizes::listen()?;
        let (stopped, stop) = input_stop()?;
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
            () = self.resizes.next_resize() => InputEvent::Resized,
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
fn read_events(tty: &Arc<File>, stopped: &InputStop, events: &mpsc::Sender<TimedInput>) {
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

/// Waits for input until a deadline.
fn wait_for_input(tty: &File, stop: &InputStop, deadline: Option<Instant>) -> io::Result<InputWait> {
    let timeout = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    wait_for_input_or_stop(tty, stop, timeout)
}
