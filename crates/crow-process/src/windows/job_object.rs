//! A job object: a set of processes that contains everything they start, and that ends when its last handle is closed,
//! as it is when Crow ends.

use std::{
    io,
    os::windows::io::{AsRawHandle as _, BorrowedHandle, FromRawHandle as _, OwnedHandle},
    ptr,
};

use windows_sys::Win32::{
    Foundation::INVALID_HANDLE_VALUE,
    System::{
        Diagnostics::ToolHelp::{
            CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
        },
        JobObjects::{
            AssignProcessToJobObject, CreateJobObjectW, JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE,
            JOBOBJECT_EXTENDED_LIMIT_INFORMATION, JobObjectExtendedLimitInformation, SetInformationJobObject,
            TerminateJobObject,
        },
        Threading::{OpenThread, ResumeThread, THREAD_SUSPEND_RESUME},
    },
};

use super::check_bool;

/// The exit code of a process that Crow ends.
const KILLED_EXIT_CODE: u32 = 1;

/// A set of processes; dropping it ends them.
#[derive(Debug)]
pub(super) struct JobObject(OwnedHandle);

impl JobObject {
    /// Creates a job object with no processes.
    pub(super) fn new() -> io::Result<Self> {
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
        #[expect(unsafe_code, reason = "the standard library has no job objects")]
        // SAFETY: the handle is new and has no other owner; the limits live until the call returns, with their length.
        unsafe {
            let job = CreateJobObjectW(ptr::null(), ptr::null());
            if job.is_null() {
                return Err(io::Error::last_os_error());
            }
            let job = Self(OwnedHandle::from_raw_handle(job));
            check_bool(SetInformationJobObject(
                job.0.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                struct_len::<JOBOBJECT_EXTENDED_LIMIT_INFORMATION>(),
            ))?;
            Ok(job)
        }
    }

    /// Adds a process.
    pub(super) fn add_process(&self, process: BorrowedHandle<'_>) -> io::Result<()> {
        #[expect(unsafe_code, reason = "the standard library has no job objects")]
        // SAFETY: both handles are open.
        unsafe {
            check_bool(AssignProcessToJobObject(self.0.as_raw_handle(), process.as_raw_handle()))
        }
    }

    /// Ends every process in it.
    pub(super) fn terminate(&self) -> io::Result<()> {
        #[expect(unsafe_code, reason = "the standard library has no job objects")]
        // SAFETY: the handle is open.
        unsafe {
            check_bool(TerminateJobObject(self.0.as_raw_handle(), KILLED_EXIT_CODE))
        }
    }
}

/// Lets a process run that was created suspended: it has one thread.
pub(super) fn resume_process(pid: u32) -> io::Result<()> {
    let thread_id = find_thread(pid)?.ok_or_else(|| io::Error::other("the new process has no thread"))?;
    #[expect(unsafe_code, reason = "the standard library does not return the thread of a process")]
    // SAFETY: the handle is new and has no other owner.
    unsafe {
        let thread = OpenThread(THREAD_SUSPEND_RESUME, 0, thread_id);
        if thread.is_null() {
            return Err(io::Error::last_os_error());
        }
        let thread = OwnedHandle::from_raw_handle(thread);
        match ResumeThread(thread.as_raw_handle()) {
            u32::MAX => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

/// Returns the ID of the first thread of a process.
fn find_thread(pid: u32) -> io::Result<Option<u32>> {
    let mut entry = THREADENTRY32 { dwSize: struct_len::<THREADENTRY32>(), ..THREADENTRY32::default() };
    #[expect(unsafe_code, reason = "the standard library lists no threads")]
    // SAFETY: the snapshot is new and has no other owner; the entry has its length and lives until the calls return.
    unsafe {
        let snapshot = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
        if snapshot == INVALID_HANDLE_VALUE {
            return Err(io::Error::last_os_error());
        }
        let snapshot = OwnedHandle::from_raw_handle(snapshot);
        let mut has_entry = Thread32First(snapshot.as_raw_handle(), &raw mut entry) != 0;
        while has_entry {
            if entry.th32OwnerProcessID == pid {
                return Ok(Some(entry.th32ThreadID));
            }
            has_entry = Thread32Next(snapshot.as_raw_handle(), &raw mut entry) != 0;
        }
    }
    Ok(None)
}

#[expect(clippy::cast_possible_truncation, reason = "structures are small")]
const fn struct_len<T>() -> u32 {
    size_of::<T>() as u32
}
