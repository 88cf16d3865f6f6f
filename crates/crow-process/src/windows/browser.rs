//! The program that opens a web page.

use std::process::Command;

/// Returns the command that opens a URL with the user's preferred program: not a shell, which would read `&`.
pub(crate) fn opener_command(address: &str) -> Command {
    #[expect(clippy::disallowed_methods, reason = "a browser has to live on when we end")]
    let mut opener = Command::new("rundll32.exe");
    opener.args(["url.dll,FileProtocolHandler", address]);
    opener
}
