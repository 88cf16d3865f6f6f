//! Opens a web page for the user of this machine. The only program that may outlive Crow.

use std::{io, process::Stdio};

use crate::{environment::hide_secrets, system::browser::opener_command};

/// Opens a URL in the user's browser, if there is one, without waiting for it.
pub fn open_in_browser(address: &str) -> io::Result<()> {
    let mut opener = opener_command(address);
    hide_secrets(&[], &mut opener);
    opener.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    opener.spawn().map(drop)
}
