//! The end of a child's stderr, separate from its stdout and bounded.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _},
    task::JoinHandle,
    time::timeout,
};

/// A stack trace with a little around it.
const TAIL_BYTES: usize = 4096;

/// The wait for the rest after the program has exited; only a process that it left behind holds the pipe.
const DRAIN: Duration = Duration::from_millis(200);

/// Reads a program's stderr until its end.
#[derive(Debug)]
pub struct StderrReader {
    tail: Arc<Mutex<VecDeque<u8>>>,
    reader: JoinHandle<()>,
}

impl StderrReader {
    /// Starts to read; lines are logged under the program's name.
    pub fn start(pipe: impl AsyncRead + Send + Unpin + 'static, program: String) -> Self {
        let tail = Arc::new(Mutex::new(VecDeque::with_capacity(TAIL_BYTES)));
        let reader = tokio::spawn(read_tail(pipe, program, tail.clone()));
        Self { tail, reader }
    }

    /// Takes the end of the output, once the program has exited.
    pub async fn finish(mut self) -> String {
        // What arrived is good enough.
        let _ = timeout(DRAIN, &mut self.reader).await;
        let tail: Vec<u8> =
            self.tail.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        strip_escapes(&String::from_utf8_lossy(&tail))
    }
}

impl Drop for StderrReader {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn read_tail(mut pipe: impl AsyncRead + Send + Unpin, program: String, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = vec![0; TAIL_BYTES];
    while let Ok(n_bytes @ 1..) = pipe.read(&mut buffer).await {
        tracing::debug!(program, "stderr: {}", String::from_utf8_lossy(&buffer[..n_bytes]).trim_end());
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&buffer[..n_bytes]);
        let n_excess = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..n_excess);
    }
}

/// Drops escape sequences.
fn strip_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.next_if_eq(&'[').is_some() {
            // A sequence ends with its first letter.
            while chars.next().is_some_and(|c| !c.is_ascii_alphabetic()) {}
        } else if !c.is_control() || matches!(c, '\n' | '\t') {
            plain.push(c);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    #[test]
    fn escapes_are_stripped() {
        assert_eq!(
            super::strip_escapes("\u{1b}[1;31mError\u{1b}[0m:\tno\r\nline\u{7}\n"),
            "Error:\tno\nline"
        );
    }
}
