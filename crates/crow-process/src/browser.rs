//! A web page for the person at this machine. The one program that may outlive us.

use std::{
    io,
    os::unix::process::CommandExt as _,
    process::{Command, Stdio},
};

use crate::environment::hide_secrets;

/// What opens addresses with the program that the person has chosen.
#[cfg(target_os = "macos")]
const OPENER: &str = "open";
#[cfg(not(target_os = "macos"))]
const OPENER: &str = "xdg-open";

/// Opens an address in the person's browser, if there is one; nobody waits for it.
pub fn open_in_browser(address: &str) -> io::Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a browser has to live on when we end")]
    let mut opener = Command::new(OPENER);
    hide_secrets(&[], &mut opener);
    opener.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // Who stops us with Ctrl-C does not mean the browser.
    opener.process_group(0).spawn().map(drop)
}
