//! Processes of which only the ID is known.

use std::{
    io,
    os::windows::io::{AsRawHandle as _, FromRawHandle as _, OwnedHandle},
};

use windows_sys::Win32::{
    Foundation::{ERROR_INVALID_PARAMETER, WAIT_OBJECT_0},
    System::Threading::{OpenProcess, PROCESS_SYNCHRONIZE, WaitForSingleObject},
};

/// Whether no process has this ID, or one that has ended while another process has a handle of it.
pub fn has_process_ended(pid: u32) -> bool {
    #[expect(unsafe_code, reason = "the standard library knows only child processes")]
    // SAFETY: the handle is new and has no other owner.
    unsafe {
        let process = OpenProcess(PROCESS_SYNCHRONIZE, 0, pid);
        if process.is_null() {
            return io::Error::last_os_error().raw_os_error() == Some(ERROR_INVALID_PARAMETER.cast_signed());
        }
        let process = OwnedHandle::from_raw_handle(process);
        WaitForSingleObject(process.as_raw_handle(), 0) == WAIT_OBJECT_0
    }
}
