//! Checks for input without reading it.

use std::{io, os::fd::AsFd};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::termios::{FlushArg, tcflush},
};

/// Waits until input can be read or has ended.
pub fn wait_for_input(input: &impl AsFd) -> io::Result<()> {
    loop {
        match poll_once(input, PollTimeout::NONE) {
            Err(Errno::EINTR) | Ok(false) => {}
            other => return Ok(other.map(drop)?),
        }
    }
}

/// Whether input, or its end, can be read at once.
pub fn has_input(input: &impl AsFd) -> io::Result<bool> {
    loop {
        match poll_once(input, PollTimeout::ZERO) {
            Err(Errno::EINTR) => {}
            other => return Ok(other?),
        }
    }
}

/// Whether the other end of a terminal is closed, so that nothing can follow what is still unread.
pub fn is_hung_up(terminal: &impl AsFd) -> io::Result<bool> {
    loop {
        let mut poll_fds = [PollFd::new(terminal.as_fd(), PollFlags::empty())];
        match poll(&mut poll_fds, PollTimeout::ZERO) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(_) => {
                let events = poll_fds[0].revents().unwrap_or(PollFlags::empty());
                return Ok(events.contains(PollFlags::POLLHUP));
            }
        }
    }
}

/// Drops unread input that was typed at a terminal.
pub fn discard_input(terminal: &impl AsFd) -> io::Result<()> {
    Ok(tcflush(terminal, FlushArg::TCIFLUSH)?)
}

fn poll_once(input: &impl AsFd, timeout: PollTimeout) -> Result<bool, Errno> {
    let mut poll_fds = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    Ok(poll(&mut poll_fds, timeout)? > 0)
}
