//! Opens a web page for the user of this machine. The only program that may outlive Crow.

use std::{
    io,
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

use crate::environment::hide_secrets;

/// The command that opens a URL with the user's preferred program.
#[cfg(target_os = "macos")]
const OPENER: &str = "open";
#[cfg(not(target_os = "macos"))]
const OPENER: &str = "xdg-open";

/// Opens a URL in the user's browser, if there is one, without waiting for it.
pub fn open_in_browser(address: &str) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a browser has to live on when we end")]
    let mut opener = Command::new(OPENER);
    hide_secrets(&[], &mut opener);
    opener.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Ctrl-C for Crow must not reach the browser.
    opener.process_group(0).spawn().map(drop)
}
