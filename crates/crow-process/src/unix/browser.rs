//! The program that opens a web page.

use std::{os::unix::process::CommandExt as _, process::Command};

/// The command that opens a URL with the user's preferred program.
#[cfg(target_os = "macos")]
const OPENER: &str = "open";
#[cfg(not(target_os = "macos"))]
const OPENER: &str = "xdg-open";

/// Returns the command that opens a URL with the user's preferred program.
pub(crate) fn opener_command(address: &str) -> Command {
    #[expect(clippy::disallowed_methods, reason = "a browser has to live on when we end")]
    let mut opener = Command::new(OPENER);
    // Ctrl-C for Crow must not reach the browser.
    opener.arg(address).process_group(0);
    opener
}
