//! The capabilities that a command run by root keeps. The others bypass the rules for files: memory of other
//! programs, devices, the kernel.

use std::io;

/// CHOWN, FOWNER, FSETID: owners and modes of files. Kept only where a read-only view bounds them.
const FILE_CAPABILITIES: u64 = 1 | 1 << 3 | 1 << 4;

/// DAC_OVERRIDE, KILL, SETGID, SETUID, NET_BIND_SERVICE, NET_RAW: needed to build and test as root; Landlock
/// restricts the files and signals among them.
const ALLOWED: u64 = 1 << 1 | 1 << 5 | 1 << 6 | 1 << 7 | 1 << 10 | 1 << 13;

/// Higher numbers are not in use and fit no set.
const NUMBERS_MAX: libc::c_ulong = 63;

/// `_LINUX_CAPABILITY_VERSION_3`.
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct CapabilityData {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Drops all capabilities except those that a command keeps, permanently.
pub(super) fn drop_capabilities(has_mount_view: bool) -> io::Result<()> {
    let allowed = if has_mount_view { ALLOWED | FILE_CAPABILITIES } else { ALLOWED };
    let mut halves = read_capabilities()?;
    let has_any = halves.iter().any(|half| half.permitted != 0);
    for number in (0..=NUMBERS_MAX).filter(|number| allowed & (1 << number) == 0) {
        if control_bounding_set(libc::PR_CAPBSET_READ, number)? != 1 {
            continue;
        }
        match control_bounding_set(libc::PR_CAPBSET_DROP, number) {
            // A process that has no capabilities and cannot gain any has nothing to drop.
            Err(error) if error.raw_os_error() == Some(libc::EPERM) && !has_any => {}
            dropped => drop(dropped?),
        }
    }
    let (low, high) = ((allowed & u64::from(u32::MAX)) as u32, (allowed >> 32) as u32);
    for (half, allowed) in halves.iter_mut().zip([low, high]) {
        half.permitted &= allowed;
        half.effective &= allowed;
        half.inheritable = 0;
    }
    write_capabilities(&halves)
}

/// Reads or changes the bounding set; unknown numbers are in no set.
fn control_bounding_set(operation: libc::c_int, number: libc::c_ulong) -> io::Result<libc::c_int> {
    #[expect(unsafe_code, reason = "no crate of ours knows this call")]
    // SAFETY: these calls take numbers only.
    let answer = unsafe { libc::prctl(operation, number, 0, 0, 0) };
    let error = io::Error::last_os_error();
    match answer {
        0.. => Ok(answer),
        _ if error.raw_os_error() == Some(libc::EINVAL) => Ok(0),
        _ => Err(error),
    }
}

fn read_capabilities() -> io::Result<[CapabilityData; 2]> {
    let mut header = CapabilityHeader { version: VERSION, pid: 0 };
    let mut halves = [CapabilityData::default(); 2];
    #[expect(unsafe_code, reason = "no crate of ours knows this call")]
    // SAFETY: both pointers are to values of the layout that this version of the call has.
    let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr()) };
    if result == 0 { Ok(halves) } else { Err(io::Error::last_os_error()) }
}

fn write_capabilities(halves: &[CapabilityData; 2]) -> io::Result<()> {
    let mut header = CapabilityHeader { version: VERSION, pid: 0 };
    #[expect(unsafe_code, reason = "no crate of ours knows this call")]
    // SAFETY: both pointers are to values of the layout that this version of the call has.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, halves.as_ptr()) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
