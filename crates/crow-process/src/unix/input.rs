//! Checks for input without reading it.

use std::{io, os::fd::AsFd, time::Duration};

use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::termios::{FlushArg, tcflush},
};

use crate::input_wait::InputWait;

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

/// Ends a wait for input when it is dropped.
#[derive(Debug)]
pub struct InputStopper {
    _writer: io::PipeWriter,
}

/// The end of an [`InputStopper`] that a wait watches.
#[derive(Debug)]
pub struct InputStop(io::PipeReader);

/// Returns a stop for waits, and the stopper that triggers it.
pub fn input_stop() -> io::Result<(InputStop, InputStopper)> {
    let (reader, writer) = io::pipe()?;
    Ok((InputStop(reader), InputStopper { _writer: writer }))
}

/// Waits until input can be read, the time has passed or the wait is stopped.
pub fn wait_for_input_or_stop(
    input: &impl AsFd,
    stop: &InputStop,
    timeout: Option<Duration>,
) -> io::Result<InputWait> {
    let timeout = timeout.map_or(PollTimeout::NONE, |timeout| {
        // A part of a millisecond is rounded up: the time has passed afterwards.
        PollTimeout::try_from(timeout + Duration::from_millis(1)).unwrap_or(PollTimeout::MAX)
    });
    let mut poll_fds =
        [PollFd::new(input.as_fd(), PollFlags::POLLIN), PollFd::new(stop.0.as_fd(), PollFlags::POLLIN)];
    match poll(&mut poll_fds, timeout) {
        Ok(0) | Err(Errno::EINTR) => Ok(InputWait::Quiet),
        Ok(_) if poll_fds[1].any() != Some(false) => Ok(InputWait::Stopped),
        Ok(_) => Ok(InputWait::Ready),
        Err(error) => Err(error.into()),
    }
}

fn poll_once(input: &impl AsFd, timeout: PollTimeout) -> Result<bool, Errno> {
    let mut poll_fds = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    Ok(poll(&mut poll_fds, timeout)? > 0)
}
