//! Checks for input without reading it. Consoles and pipes cannot be waited for together, so waits look at intervals.

use std::{
    io,
    os::windows::io::{AsHandle, AsRawHandle as _, BorrowedHandle},
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use windows_sys::Win32::{
    Foundation::ERROR_BROKEN_PIPE,
    Storage::FileSystem::{FILE_TYPE_CHAR, FILE_TYPE_PIPE, GetFileType},
    System::{
        Console::{FlushConsoleInputBuffer, GetConsoleMode, INPUT_RECORD, KEY_EVENT, PeekConsoleInputW},
        Pipes::PeekNamedPipe,
    },
};

use super::check_bool;
use crate::input_wait::InputWait;

/// Shorter than a person notices, longer than a look takes.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// Keys that wait in a console: more than a line has.
const RECORDS_MAX: usize = 1024;

const ENTER: u16 = 13;

/// Waits until input can be read or has ended.
pub fn wait_for_input(input: &impl AsHandle) -> io::Result<()> {
    while !has_input(input)? {
        thread::sleep(LOOK_INTERVAL);
    }
    Ok(())
}

/// Whether input, or its end, can be read at once. Of a console, a whole line can be read.
pub fn has_input(input: &impl AsHandle) -> io::Result<bool> {
    let handle = input.as_handle();
    #[expect(unsafe_code, reason = "the standard library does not return the type of a handle")]
    // SAFETY: the handle is open.
    let file_type = unsafe { GetFileType(handle.as_raw_handle()) };
    match file_type {
        FILE_TYPE_PIPE => has_pipe_input(handle),
        FILE_TYPE_CHAR if is_console(handle) => has_console_line(handle),
        // A file, or the null device.
        _ => Ok(true),
    }
}

fn has_pipe_input(pipe: BorrowedHandle<'_>) -> io::Result<bool> {
    let mut n_bytes = 0;
    #[expect(unsafe_code, reason = "the standard library does not look into pipes")]
    // SAFETY: the handle is open, and the number is written to a value that lives until the call returns.
    let result = check_bool(unsafe {
        PeekNamedPipe(
            pipe.as_raw_handle(),
            ptr::null_mut(),
            0,
            ptr::null_mut(),
            &raw mut n_bytes,
            ptr::null_mut(),
        )
    });
    match result {
        Err(error) if error.raw_os_error() == Some(ERROR_BROKEN_PIPE.cast_signed()) => Ok(true),
        result => result.map(|()| n_bytes > 0),
    }
}

fn is_console(handle: BorrowedHandle<'_>) -> bool {
    let mut mode = 0;
    #[expect(unsafe_code, reason = "the standard library does not read the mode of a console")]
    // SAFETY: the handle is open, and the mode is written to a value that lives until the call returns.
    unsafe {
        GetConsoleMode(handle.as_raw_handle(), &raw mut mode) != 0
    }
}

fn has_console_line(console: BorrowedHandle<'_>) -> io::Result<bool> {
    let mut records = vec![INPUT_RECORD::default(); RECORDS_MAX];
    let mut n_records = 0;
    #[expect(unsafe_code, reason = "the standard library does not look into consoles")]
    // SAFETY: the records have the length given, and live until the call returns; the union of a record is read as its
    // type says.
    unsafe {
        let length = u32::try_from(records.len()).unwrap_or(u32::MAX);
        check_bool(PeekConsoleInputW(
            console.as_raw_handle(),
            records.as_mut_ptr(),
            length,
            &raw mut n_records,
        ))?;
        Ok(records.iter().take(n_records as usize).any(|record| {
            u32::from(record.EventType) == KEY_EVENT
                && record.Event.KeyEvent.bKeyDown != 0
                && record.Event.KeyEvent.wVirtualKeyCode == ENTER
        }))
    }
}

/// Whether the other end of a terminal is closed: this process ends with its console.
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on other systems")]
pub fn is_hung_up(_terminal: &impl AsHandle) -> io::Result<bool> {
    Ok(false)
}

/// Drops unread input that was typed at a console.
pub fn discard_input(terminal: &impl AsHandle) -> io::Result<()> {
    #[expect(unsafe_code, reason = "the standard library does not drop input")]
    // SAFETY: the handle is open.
    check_bool(unsafe { FlushConsoleInputBuffer(terminal.as_handle().as_raw_handle()) })
}

/// Ends a wait for input when it is dropped.
#[derive(Debug)]
pub struct InputStopper(Arc<AtomicBool>);

impl Drop for InputStopper {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The end of an [`InputStopper`] that a wait watches.
#[derive(Debug)]
pub struct InputStop(Arc<AtomicBool>);

/// Returns a stop for waits, and the stopper that triggers it.
#[expect(clippy::unnecessary_wraps, reason = "the same signature as on other systems")]
pub fn input_stop() -> io::Result<(InputStop, InputStopper)> {
    let is_stopped = Arc::new(AtomicBool::new(false));
    Ok((InputStop(is_stopped.clone()), InputStopper(is_stopped)))
}

/// Waits until input can be read, the time has passed or the wait is stopped.
pub fn wait_for_input_or_stop(
    input: &impl AsHandle,
    stop: &InputStop,
    timeout: Option<Duration>,
) -> io::Result<InputWait> {
    let began = Instant::now();
    loop {
        if stop.0.load(Ordering::Relaxed) {
            return Ok(InputWait::Stopped);
        }
        if has_input(input)? {
            return Ok(InputWait::Ready);
        }
        if timeout.is_some_and(|timeout| began.elapsed() >= timeout) {
            return Ok(InputWait::Quiet);
        }
        thread::sleep(LOOK_INTERVAL);
    }
}
