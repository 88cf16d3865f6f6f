//! System calls that open a file by its name in an open directory, and that the standard library does not have.

use std::{
    ffi::{OsStr, c_void},
    fs::File,
    io, mem,
    os::windows::{
        ffi::OsStrExt as _,
        io::{AsRawHandle as _, BorrowedHandle, FromRawHandle as _, OwnedHandle},
    },
    ptr,
};

use windows_sys::{
    Wdk::{
        Foundation::OBJECT_ATTRIBUTES,
        Storage::FileSystem::{
            FILE_RENAME_INFORMATION, FILE_RENAME_INFORMATION_0, FILE_RENAME_POSIX_SEMANTICS,
            FILE_RENAME_REPLACE_IF_EXISTS, FILE_SYNCHRONOUS_IO_NONALERT, FileRenameInformation,
            FileRenameInformationEx, NTCREATEFILE_CREATE_DISPOSITION, NTCREATEFILE_CREATE_OPTIONS,
            NtCreateFile, NtSetInformationFile,
        },
    },
    Win32::{
        Foundation::{
            ERROR_NO_MORE_FILES, HANDLE, NTSTATUS, OBJ_CASE_INSENSITIVE, OBJ_DONT_REPARSE,
            RtlNtStatusToDosError, STATUS_INVALID_INFO_CLASS, STATUS_INVALID_PARAMETER,
            STATUS_NOT_IMPLEMENTED, STATUS_NOT_SUPPORTED, STATUS_REPARSE_POINT_ENCOUNTERED,
            STATUS_STOPPED_ON_SYMLINK, UNICODE_STRING,
        },
        Security::{DACL_SECURITY_INFORMATION, GetKernelObjectSecurity, SetKernelObjectSecurity},
        Storage::FileSystem::{
            BY_HANDLE_FILE_INFORMATION, FILE_ACCESS_RIGHTS, FILE_BASIC_INFO, FILE_SHARE_DELETE,
            FILE_SHARE_READ, FILE_SHARE_WRITE, FileBasicInfo, FileFullDirectoryInfo,
            GetFileInformationByHandle, GetFileInformationByHandleEx,
        },
        System::IO::IO_STATUS_BLOCK,
    },
};

use crate::dir_entry::symlink_error;

/// The way in which a name is opened.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenRequest {
    pub(super) access: FILE_ACCESS_RIGHTS,
    pub(super) disposition: NTCREATEFILE_CREATE_DISPOSITION,
    pub(super) options: NTCREATEFILE_CREATE_OPTIONS,
}

/// The access control list of a file; larger ones do not exist.
const SECURITY_BYTES_MAX: usize = 64 * 1024;

/// Opens a name, or names with `\` between them, in an open directory. A link anywhere on the way is an error. An empty
/// name is the directory itself.
pub(super) fn open_at(
    dir: BorrowedHandle<'_>,
    name: &OsStr,
    request: OpenRequest,
) -> io::Result<OwnedHandle> {
    let mut name: Vec<u16> = name.encode_wide().collect();
    let n_bytes = u16::try_from(name.len() * size_of::<u16>())
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidFilename, "the path is too long"))?;
    let name = UNICODE_STRING { Length: n_bytes, MaximumLength: n_bytes, Buffer: name.as_mut_ptr() };
    let attributes = OBJECT_ATTRIBUTES {
        Length: struct_len::<OBJECT_ATTRIBUTES>(),
        RootDirectory: dir.as_raw_handle(),
        ObjectName: &raw const name,
        Attributes: OBJ_CASE_INSENSITIVE | OBJ_DONT_REPARSE,
        SecurityDescriptor: ptr::null(),
        SecurityQualityOfService: ptr::null(),
    };
    let mut handle: HANDLE = ptr::null_mut();
    let mut status_block = IO_STATUS_BLOCK::default();
    #[expect(unsafe_code, reason = "no crate of ours opens a name in a directory")]
    // SAFETY: every pointer is to a value that lives until the call returns; the handle is new and has no other owner.
    unsafe {
        check_status(NtCreateFile(
            &raw mut handle,
            request.access,
            &raw const attributes,
            &raw mut status_block,
            ptr::null(),
            0,
            FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
            request.disposition,
            request.options | FILE_SYNCHRONOUS_IO_NONALERT,
            ptr::null(),
            0,
        ))?;
        Ok(OwnedHandle::from_raw_handle(handle))
    }
}

/// Renames an open file to a name in an open directory, replacing what has the name.
pub(super) fn rename_to(file: &OwnedHandle, dir: &OwnedHandle, name: &OsStr) -> io::Result<()> {
    let posix =
        FILE_RENAME_INFORMATION_0 { Flags: FILE_RENAME_REPLACE_IF_EXISTS | FILE_RENAME_POSIX_SEMANTICS };
    match set_rename_information(file, dir, name, FileRenameInformationEx, posix) {
        // File systems other than NTFS, and old systems, know only the simple rename.
        STATUS_INVALID_PARAMETER
        | STATUS_INVALID_INFO_CLASS
        | STATUS_NOT_IMPLEMENTED
        | STATUS_NOT_SUPPORTED => {}
        status => return check_status(status),
    }
    let simple = FILE_RENAME_INFORMATION_0 { Flags: FILE_RENAME_REPLACE_IF_EXISTS };
    check_status(set_rename_information(file, dir, name, FileRenameInformation, simple))
}

fn set_rename_information(
    file: &OwnedHandle,
    dir: &OwnedHandle,
    name: &OsStr,
    class: i32,
    flags: FILE_RENAME_INFORMATION_0,
) -> NTSTATUS {
    let name: Vec<u16> = name.encode_wide().collect();
    let name_offset = mem::offset_of!(FILE_RENAME_INFORMATION, FileName);
    let n_bytes = name_offset + name.len() * size_of::<u16>();
    // Aligned as the structure is; the name follows it.
    let mut buffer = vec![0u64; n_bytes.max(size_of::<FILE_RENAME_INFORMATION>()).div_ceil(size_of::<u64>())];
    let information = buffer.as_mut_ptr().cast::<FILE_RENAME_INFORMATION>();
    let mut status_block = IO_STATUS_BLOCK::default();
    #[expect(unsafe_code, reason = "no crate of ours renames a file in a directory")]
    #[expect(clippy::cast_possible_truncation, reason = "names have at most 32,767 characters")]
    // SAFETY: the buffer is aligned and large enough for the structure and the name, and lives until the call returns.
    unsafe {
        (&raw mut (*information).Anonymous).write(flags);
        (&raw mut (*information).RootDirectory).write(dir.as_raw_handle());
        (&raw mut (*information).FileNameLength).write((name.len() * size_of::<u16>()) as u32);
        let name_start = (&raw mut (*information).FileName).cast::<u16>();
        name_start.copy_from_nonoverlapping(name.as_ptr(), name.len());
        NtSetInformationFile(
            file.as_raw_handle(),
            &raw mut status_block,
            information.cast::<c_void>(),
            n_bytes as u32,
            class,
        )
    }
}

/// Returns numbers that identify an open file and its state.
pub(super) fn query_state(file: &File) -> io::Result<[i64; 7]> {
    let mut identity = BY_HANDLE_FILE_INFORMATION::default();
    let mut times = FILE_BASIC_INFO::default();
    #[expect(unsafe_code, reason = "the standard library does not return the identity of a file")]
    // SAFETY: both structures live until the calls return, and the length is that of the second.
    unsafe {
        check_bool(GetFileInformationByHandle(file.as_raw_handle(), &raw mut identity))?;
        check_bool(GetFileInformationByHandleEx(
            file.as_raw_handle(),
            FileBasicInfo,
            (&raw mut times).cast::<c_void>(),
            struct_len::<FILE_BASIC_INFO>(),
        ))?;
    }
    let join = |high: u32, low: u32| (u64::from(high) << 32 | u64::from(low)).cast_signed();
    Ok([
        i64::from(identity.dwVolumeSerialNumber),
        join(identity.nFileIndexHigh, identity.nFileIndexLow),
        join(identity.nFileSizeHigh, identity.nFileSizeLow),
        times.LastWriteTime,
        times.ChangeTime,
        times.CreationTime,
        i64::from(times.FileAttributes),
    ])
}

/// Reads the next entries of an open directory into a buffer; false at the end.
pub(super) fn read_dir_entries(dir: &OwnedHandle, buffer: &mut [u64]) -> io::Result<bool> {
    let n_bytes = u32::try_from(size_of_val(buffer)).unwrap_or(u32::MAX);
    #[expect(unsafe_code, reason = "the standard library lists no open directory")]
    // SAFETY: the buffer is aligned for the entries, has the length given, and lives until the call returns.
    let result = check_bool(unsafe {
        GetFileInformationByHandleEx(
            dir.as_raw_handle(),
            FileFullDirectoryInfo,
            buffer.as_mut_ptr().cast::<c_void>(),
            n_bytes,
        )
    });
    match result {
        Err(error) if error.raw_os_error() == Some(ERROR_NO_MORE_FILES.cast_signed()) => Ok(false),
        result => result.map(|()| true),
    }
}

/// Gives a file the access control list of another one.
pub(super) fn copy_access_list(from: &File, to: &File) -> io::Result<()> {
    let mut buffer = vec![0u64; SECURITY_BYTES_MAX / size_of::<u64>()];
    let descriptor = buffer.as_mut_ptr().cast::<c_void>();
    let mut n_bytes_needed = 0;
    #[expect(unsafe_code, reason = "the standard library has no access control lists")]
    #[expect(clippy::cast_possible_truncation, reason = "the constant is small")]
    // SAFETY: the buffer is aligned for a descriptor, has the length given, and lives until the calls return; the first
    // call fills it before the second reads it.
    unsafe {
        check_bool(GetKernelObjectSecurity(
            from.as_raw_handle(),
            DACL_SECURITY_INFORMATION,
            descriptor,
            SECURITY_BYTES_MAX as u32,
            &raw mut n_bytes_needed,
        ))?;
        check_bool(SetKernelObjectSecurity(to.as_raw_handle(), DACL_SECURITY_INFORMATION, descriptor))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "structures are small")]
const fn struct_len<T>() -> u32 {
    size_of::<T>() as u32
}

fn check_bool(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn check_status(status: NTSTATUS) -> io::Result<()> {
    match status {
        0.. => Ok(()),
        STATUS_REPARSE_POINT_ENCOUNTERED | STATUS_STOPPED_ON_SYMLINK => Err(symlink_error()),
        #[expect(unsafe_code, reason = "the system call for this conversion")]
        // SAFETY: it takes a number and returns one.
        _ => Err(io::Error::from_raw_os_error(unsafe { RtlNtStatusToDosError(status) }.cast_signed())),
    }
}
