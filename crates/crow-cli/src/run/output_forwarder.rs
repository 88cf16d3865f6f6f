//! The output of a user's command on its way to the interactive terminal.

use crow_process::OutputWatcher;
use tokio::sync::mpsc;

/// A longer line is sent in pieces.
const LINE_BYTES_MAX: usize = 8 * 1024;

/// Bytes that wait while the terminal is behind; it shows only the end of an output.
const PENDING_BYTES_MAX: usize = 256 * 1024;

/// Sends output as it arrives; what the receiver has no room for is sent with the next piece.
pub(super) struct OutputForwarder {
    output: mpsc::Sender<String>,
    pending: Vec<u8>,
    /// Bytes up to the end of the last line, or of the last piece of a long one.
    n_complete: usize,
}

impl OutputForwarder {
    pub(super) fn new(output: mpsc::Sender<String>) -> Self {
        Self { output, pending: Vec::new(), n_complete: 0 }
    }

    /// Sends the rest.
    pub(super) async fn finish(self) {
        if !self.pending.is_empty() {
            // The receiver has gone with the client.
            let _ = self.output.send(String::from_utf8_lossy(&self.pending).into_owned()).await;
        }
    }

    /// Drops the first half of too many bytes.
    fn drop_oldest(&mut self) {
        if self.pending.len() > PENDING_BYTES_MAX {
            let n_dropped = self.pending.len() - PENDING_BYTES_MAX / 2;
            let n_rest = self.pending[n_dropped..].iter().take_while(|&&byte| is_continuation(byte)).count();
            self.pending.drain(..n_dropped + n_rest);
            self.n_complete = self.n_complete.saturating_sub(n_dropped + n_rest);
        }
    }
}

impl OutputWatcher for &mut OutputForwarder {
    fn on_output(&mut self, bytes: &[u8]) {
        // A piece ends with a line, so that no letter is cut.
        if let Some(end) = bytes.iter().rposition(|&byte| byte == b'\n') {
            self.n_complete = self.pending.len() + end + 1;
        }
        self.pending.extend_from_slice(bytes);
        if self.pending.len() - self.n_complete > LINE_BYTES_MAX {
            self.n_complete = end_of_letters(&self.pending);
        }
        if self.n_complete > 0
            && let Ok(permit) = self.output.try_reserve()
        {
            permit.send(String::from_utf8_lossy(&self.pending[..self.n_complete]).into_owned());
            self.pending.drain(..self.n_complete);
            self.n_complete = 0;
        }
        self.drop_oldest();
    }

    fn on_snapshot(&mut self, _text: &dyn Fn() -> String) {}
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// Returns the number of bytes without those of a letter that is not complete yet.
fn end_of_letters(bytes: &[u8]) -> usize {
    // A letter has four bytes at most.
    let tail = bytes.len().saturating_sub(3);
    match bytes[tail..].iter().rposition(|&byte| !is_continuation(byte)) {
        Some(last) => match std::str::from_utf8(&bytes[tail + last..]) {
            Err(error) if error.error_len().is_none() => tail + last,
            Ok(_) | Err(_) => bytes.len(),
        },
        None => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    /// Compares the pieces that a receiver with room for `n_pieces` gets of these chunks, and the bytes that still wait.
    #[track_caller]
    fn check(n_pieces: usize, chunks: &[&[u8]], expected: &Expect) {
        let (output, mut receiver) = mpsc::channel(n_pieces);
        let mut forwarder = OutputForwarder::new(output);
        for chunk in chunks {
            (&mut forwarder).on_output(chunk);
        }
        let mut shown = String::new();
        while let Ok(piece) = receiver.try_recv() {
            match piece.len() {
                0..20 => shown.push_str(&format!("{piece:?}\n")),
                n_bytes => shown.push_str(&format!("{n_bytes} bytes to {:?}\n", piece.chars().next_back())),
            }
        }
        expected.assert_eq(&format!("{shown}waiting: {}\n", forwarder.pending.len()));
    }

    #[test]
    fn lines_are_sent_whole() {
        check(
            9,
            &[b"one\ntw", b"o", b"\nthree"],
            &expect![[r#"
            "one\n"
            "two\n"
            waiting: 5
        "#]],
        );
        check(
            1,
            &[b"one\n", b"two\n", b"three"],
            &expect![[r#"
            "one\n"
            waiting: 9
        "#]],
        );
    }

    #[test]
    fn long_lines_are_sent_in_pieces_between_letters() {
        let half = "ä".repeat(2500);
        let (first, second) = half.as_bytes().split_at(4001);
        check(
            9,
            &[half.as_bytes(), first, second, b"\n"],
            &expect![[r#"
                9000 bytes to Some('ä')
                1001 bytes to Some('\n')
                waiting: 0
            "#]],
        );
        check(
            9,
            &[&[0xff; 9000]],
            &expect![[r#"
            27000 bytes to Some('�')
            waiting: 0
        "#]],
        );
    }

    #[test]
    fn output_that_waits_is_bounded() {
        let chunks = vec!["yä\n".as_bytes(); 100_000];
        check(
            1,
            &chunks,
            &expect![[r#"
                "yä\n"
                waiting: 137844
            "#]],
        );
        let chunks = vec!["äöü".as_bytes(); 100_000];
        check(
            1,
            &chunks,
            &expect![[r#"
                8196 bytes to Some('ü')
                waiting: 198578
            "#]],
        );
    }
}
