//! Whether input is there, without taking it.

use std::{io, os::fd::AsFd};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::termios::{FlushArg, tcflush},
};

/// Waits until something can be read, or the end of it.
pub fn wait_for_input(input: &impl AsFd) -> io::Result<()> {
    loop {
        match poll_once(input, PollTimeout::NONE) {
            Err(Errno::EINTR) | Ok(false) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// Whether something, or the end of it, can be read at once.
pub fn has_input(input: &impl AsFd) -> io::Result<bool> {
    loop {
        match poll_once(input, PollTimeout::ZERO) {
            Err(Errno::EINTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Drops what was typed at a terminal and nobody has read.
pub fn discard_input(terminal: &impl AsFd) -> io::Result<()> {
    Ok(tcflush(terminal, FlushArg::TCIFLUSH)?)
}

fn poll_once(input: &impl AsFd, timeout: PollTimeout) -> Result<bool, Errno> {
    let mut wanted = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    Ok(poll(&mut wanted, timeout)? > 0)
}
