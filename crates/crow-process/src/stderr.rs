//! The end of what a program at our side complained of. Kept apart from what it answers, and bounded.

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
const KEPT_BYTES: usize = 4096;

/// How long the rest is awaited when the program is gone; only a process that it left behind holds the pipe.
const DRAIN: Duration = Duration::from_millis(200);

/// Reads a program's stderr until its end.
#[derive(Debug)]
pub struct StderrReader {
    kept: Arc<Mutex<VecDeque<u8>>>,
    reader: JoinHandle<()>,
}

impl StderrReader {
    /// Starts to read; what comes is logged under the program's name.
    pub fn start(pipe: impl AsyncRead + Send + Unpin + 'static, program: String) -> Self {
        let kept = Arc::new(Mutex::new(VecDeque::with_capacity(KEPT_BYTES)));
        let reader = tokio::spawn(read_tail(pipe, program, kept.clone()));
        Self { kept, reader }
    }

    /// Takes the end of what was said, once the program has gone.
    pub async fn finish(mut self) -> String {
        // What is there is good enough.
        let _ = timeout(DRAIN, &mut self.reader).await;
        let kept: Vec<u8> =
            self.kept.lock().unwrap_or_else(PoisonError::into_inner).iter().copied().collect();
        strip_escapes(&String::from_utf8_lossy(&kept))
    }
}

impl Drop for StderrReader {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

async fn read_tail(mut pipe: impl AsyncRead + Send + Unpin, program: String, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut buffer = vec![0; KEPT_BYTES];
    while let Ok(n_bytes @ 1..) = pipe.read(&mut buffer).await {
        tracing::debug!(program, "stderr: {}", String::from_utf8_lossy(&buffer[..n_bytes]).trim_end());
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&buffer[..n_bytes]);
        let n_over = kept.len().saturating_sub(KEPT_BYTES);
        kept.drain(..n_over);
    }
}

/// Drops what only a terminal understands.
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
    fn only_text_is_left() {
        assert_eq!(
            super::strip_escapes("\u{1b}[1;31mError\u{1b}[0m:\tno\r\nline\u{7}\n"),
            "Error:\tno\nline"
        );
    }
}
