//! The image in the clipboard, by the programs that read it, and the clipboard of tmux. Knows no prompt.

use std::{fs, path::Path, sync::Arc, time::Duration};

use crow_core::ContentPart;
use crow_process::{CommandSpec, ExitReason, OutputWatcher, ProcessGroups, RunLimits};
use crow_tui::AttachedImage;
use tokio_util::sync::CancellationToken;

/// Command lines that write the image to stdout as PNG: on Wayland, X11 and macOS.
pub(super) const READERS: [&str; 3] = [
    "wl-paste --no-newline --type image/png",
    "xclip -selection clipboard -target image/png -out",
    "pngpaste -",
];

/// The owner of the clipboard may be a program that does not answer.
const READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Timeout of tmux, which only hands the text over.
const COPY_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes of a message of tmux.
const MESSAGE_BYTES: usize = 1024;

/// Exit code of a shell that finds no such program.
const NOT_FOUND: i32 = 127;

/// Reads the image with the first program that has one.
pub(super) async fn read_image(
    groups: &Arc<ProcessGroups>,
    cwd: &Path,
    readers: &[&str],
) -> Result<AttachedImage, String> {
    let mut has_program = false;
    for reader in readers {
        let command = CommandSpec {
            program: "sh".to_owned(),
            args: vec!["-c".to_owned(), format!("exec {reader} 2>/dev/null")],
            cwd: cwd.to_owned(),
            env: Vec::new(),
            env_removed: Vec::new(),
        };
        let limits = RunLimits { timeout: READ_TIMEOUT, head_bytes: 0, tail_bytes: 0, spill_dir: None };
        let mut collector = ByteCollector::default();
        let cancel = CancellationToken::new();
        let result = crow_process::run_program(groups, command, limits, &cancel, &mut collector).await;
        match result.map(|result| result.exit) {
            Ok(ExitReason::Exited(0)) if !collector.bytes.is_empty() => return collector.into_image(),
            Ok(ExitReason::Exited(NOT_FOUND)) => {}
            Ok(_) | Err(_) => has_program = true,
        }
    }
    Err(match has_program {
        true => "the clipboard has no image".to_owned(),
        false => "no program can read the clipboard; install wl-clipboard, xclip or pngpaste".to_owned(),
    })
}

/// Puts a text into the buffer of tmux and into the clipboard of its terminal. By default, tmux itself ignores the
/// sequence with which a program in it sets the clipboard.
pub(super) async fn copy_in_tmux(groups: &Arc<ProcessGroups>, cwd: &Path, text: &str) -> Result<(), String> {
    let failed = |reason: String| format!("tmux did not copy the text: {reason}");
    let file = tempfile::NamedTempFile::new().map_err(|error| failed(error.to_string()))?;
    fs::write(file.path(), text).map_err(|error| failed(error.to_string()))?;
    let command = CommandSpec {
        program: "tmux".to_owned(),
        args: vec!["load-buffer".to_owned(), "-w".to_owned(), file.path().display().to_string()],
        cwd: cwd.to_owned(),
        env: Vec::new(),
        env_removed: Vec::new(),
    };
    let limits =
        RunLimits { timeout: COPY_TIMEOUT, head_bytes: MESSAGE_BYTES, tail_bytes: 0, spill_dir: None };
    let cancel = CancellationToken::new();
    let result = crow_process::run_program(groups, command, limits, &cancel, |_: &str| {}).await;
    let result = result.map_err(|error| failed(error.to_string()))?;
    match result.exit {
        ExitReason::Exited(0) => Ok(()),
        ExitReason::Exited(_) | ExitReason::Signalled(_) | ExitReason::Cancelled => {
            Err(failed(result.output.text.trim().to_owned()))
        }
        ExitReason::TimedOut => Err(failed("it did not answer".to_owned())),
    }
}

/// The output of a program, of which no more is kept than an image may have.
#[derive(Default)]
struct ByteCollector {
    bytes: Vec<u8>,
}

impl ByteCollector {
    fn into_image(self) -> Result<AttachedImage, String> {
        match crow_tools::image_part(&self.bytes)? {
            ContentPart::Image { mime, data } => {
                Ok(AttachedImage { name: "clipboard".to_owned(), mime, data })
            }
            ContentPart::Text(_)
            | ContentPart::Link { .. }
            | ContentPart::Resource { .. }
            | ContentPart::FromCrow { .. } => Err("the clipboard has no image".to_owned()),
        }
    }
}

impl OutputWatcher for &mut ByteCollector {
    fn on_output(&mut self, bytes: &[u8]) {
        // One byte more shows that it is too large.
        let n_free = (crow_tools::IMAGE_BYTES_MAX + 1).saturating_sub(self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(n_free)]);
    }

    fn on_snapshot(&mut self, _text: &dyn Fn() -> String) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn clipboard_is_read_by_the_first_program_with_an_image() {
        let dir = tempfile::tempdir().unwrap();
        let pixel = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
            \0\0\0\rIDATx\xdacd\xf8\xcfP\x0f\0\x03\x86\x01\x80Z4}k\0\0\0\0IEND\xaeB`\x82";
        std::fs::write(dir.path().join("pixel.png"), pixel).unwrap();
        let read = async |readers: &[&str]| {
            let read = read_image(&Arc::default(), dir.path(), readers).await;
            read.map(|image| format!("{} {}", image.name, image.mime))
        };
        assert_eq!(
            read(&["no-such-program", "false", "cat pixel.png"]).await.as_deref(),
            Ok("clipboard image/png")
        );
        assert_eq!(read(&["false"]).await.unwrap_err(), "the clipboard has no image");
        assert_eq!(
            read(&["no-such-program"]).await.unwrap_err(),
            "no program can read the clipboard; install wl-clipboard, xclip or pngpaste"
        );
        let large = read(&["head -c 9000000 /dev/zero"]).await.unwrap_err();
        assert!(large.contains("too large"), "{large}");
    }
}
