//! A pseudo terminal for a program: a pseudo console between two pipes.

use std::{
    fs::File,
    io,
    os::windows::{
        io::{AsHandle as _, AsRawHandle as _, FromRawHandle as _, OwnedHandle},
        process::ExitStatusExt as _,
    },
    process::ExitStatus,
    ptr,
    sync::Arc,
    thread,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    sync::oneshot,
};
use windows_sys::Win32::{
    Foundation::{S_OK, WAIT_OBJECT_0},
    System::{
        Console::{COORD, ClosePseudoConsole, CreatePseudoConsole, HPCON},
        Threading::{
            CREATE_SUSPENDED, CREATE_UNICODE_ENVIRONMENT, CreateProcessW, DeleteProcThreadAttributeList,
            EXTENDED_STARTUPINFO_PRESENT, GetExitCodeProcess, INFINITE, InitializeProcThreadAttributeList,
            LPPROC_THREAD_ATTRIBUTE_LIST, PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE, PROCESS_INFORMATION,
            STARTF_USESTDHANDLES, STARTUPINFOEXW, TerminateProcess, UpdateProcThreadAttribute,
            WaitForSingleObject,
        },
    },
};

use super::{
    check_bool,
    command_line::{self, ProcessParameters},
    process_group::ProcessGroup,
    spawn::ProgramChild,
};

/// Rows and columns: what programs expect at least, and lines that a model reads without a break.
const SIZE: COORD = COORD { X: 100, Y: 24 };

/// A program that Crow could not take into its group.
const FAILED_EXIT_CODE: u32 = 1;

/// Our end of a terminal.
pub(crate) struct PseudoTerminal {
    pub(crate) output: TerminalOutput,
    pub(crate) input: TerminalInput,
}

pub(crate) struct TerminalOutput(tokio::fs::File);
pub(crate) struct TerminalInput(tokio::fs::File);

/// A child on a terminal, in its group.
pub(crate) struct TerminalProgram {
    pub(crate) child: ProgramChild,
    pub(crate) group: ProcessGroup,
    pub(crate) terminal: PseudoTerminal,
}

/// A child whose end a thread waits for.
pub(crate) struct TerminalChild {
    exit: oneshot::Receiver<io::Result<ExitStatus>>,
    status: Option<ExitStatus>,
}

impl TerminalChild {
    /// Waits for its end. Cancel safe.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        let status = (&mut self.exit).await.map_err(|_| io::Error::other("nothing waits for it"))??;
        self.status = Some(status);
        Ok(status)
    }
}

/// Starts a command on a terminal of its own.
#[expect(clippy::needless_pass_by_value, reason = "the same signature as on other systems")]
pub(crate) fn spawn_on_pty(command: tokio::process::Command) -> io::Result<TerminalProgram> {
    let parameters = command_line::process_parameters(command.as_std())?;
    let (console_input, input) = io::pipe()?;
    let (output, console_output) = io::pipe()?;
    let console = PseudoConsole::open(&console_input, &console_output)?;
    // The console has copies: ours would keep the pipes open.
    drop((console_input, console_output));
    let process = spawn_suspended(parameters, &console)?;
    let input = File::from(OwnedHandle::from(input));
    let interrupts = Arc::new(input.try_clone()?);
    let group = match ProcessGroup::contain(process.handle.as_handle(), process.pid, Some(interrupts)) {
        Ok(group) => group,
        Err(error) => {
            #[expect(unsafe_code, reason = "the standard library did not start it")]
            // SAFETY: the handle is open. A failure to end it cannot be handled any further.
            unsafe {
                TerminateProcess(process.handle.as_raw_handle(), FAILED_EXIT_CODE);
            }
            return Err(error);
        }
    };
    let (exit_sender, exit) = oneshot::channel();
    let wait = move || {
        let status = wait_for_exit(&process.handle);
        // This ends the output.
        drop(console);
        // The program may have been dropped.
        let _ = exit_sender.send(status);
    };
    thread::Builder::new().name("terminal program".into()).spawn(wait)?;
    let terminal = PseudoTerminal {
        output: TerminalOutput(tokio::fs::File::from_std(File::from(OwnedHandle::from(output)))),
        input: TerminalInput(tokio::fs::File::from_std(input)),
    };
    let child = ProgramChild::Terminal(TerminalChild { exit, status: None });
    Ok(TerminalProgram { child, group, terminal })
}

impl TerminalOutput {
    /// Reads output; zero bytes when the terminal is closed.
    pub(crate) async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer).await {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(0),
            read => read,
        }
    }
}

impl TerminalInput {
    /// Writes as much as there is room for.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).await
    }
}

/// A console without a window. Dropping it ends the programs that are still on it.
struct PseudoConsole(HPCON);

impl PseudoConsole {
    fn open(input: &io::PipeReader, output: &io::PipeWriter) -> io::Result<Self> {
        let mut console: HPCON = 0;
        #[expect(unsafe_code, reason = "the standard library has no pseudo consoles")]
        // SAFETY: both handles are open, and the result is written to a value that lives until the call returns.
        let result = unsafe {
            CreatePseudoConsole(SIZE, input.as_raw_handle(), output.as_raw_handle(), 0, &raw mut console)
        };
        if result == S_OK { Ok(Self(console)) } else { Err(io::Error::from_raw_os_error(result)) }
    }
}

impl Drop for PseudoConsole {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the standard library has no pseudo consoles")]
        // SAFETY: it is closed once.
        unsafe {
            ClosePseudoConsole(self.0);
        }
    }
}

struct SuspendedProcess {
    handle: OwnedHandle,
    pid: u32,
}

fn spawn_suspended(
    mut parameters: ProcessParameters,
    console: &PseudoConsole,
) -> io::Result<SuspendedProcess> {
    let attributes = ConsoleAttribute::new(console)?;
    let mut startup = STARTUPINFOEXW { lpAttributeList: attributes.list(), ..STARTUPINFOEXW::default() };
    startup.StartupInfo.cb = u32::try_from(size_of::<STARTUPINFOEXW>()).unwrap_or_default();
    // Without handles of its own it takes the console's, not those that our stdin and stdout are redirected to.
    startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    let mut process = PROCESS_INFORMATION::default();
    #[expect(unsafe_code, reason = "the standard library starts nothing on a pseudo console")]
    // SAFETY: each pointer is to a value that lives until the call returns; the texts end with a null character, the
    // environment with two. Both handles are new and have no other owner.
    unsafe {
        check_bool(CreateProcessW(
            parameters.program.as_ptr(),
            parameters.command_line.as_mut_ptr(),
            ptr::null(),
            ptr::null(),
            0,
            EXTENDED_STARTUPINFO_PRESENT | CREATE_UNICODE_ENVIRONMENT | CREATE_SUSPENDED,
            parameters.environment.as_ptr().cast(),
            parameters.cwd.as_ptr(),
            (&raw const startup).cast(),
            &raw mut process,
        ))?;
        drop(OwnedHandle::from_raw_handle(process.hThread));
        let handle = OwnedHandle::from_raw_handle(process.hProcess);
        Ok(SuspendedProcess { handle, pid: process.dwProcessId })
    }
}

/// The list of one attribute that starts a process on a console.
struct ConsoleAttribute(Vec<usize>);

impl ConsoleAttribute {
    fn new(console: &PseudoConsole) -> io::Result<Self> {
        let mut n_bytes = 0;
        #[expect(unsafe_code, reason = "the standard library has no attribute lists")]
        // SAFETY: without a list the first call only returns the size; the list then has it, and is aligned. The console
        // is a handle that is passed as a pointer, and open.
        unsafe {
            InitializeProcThreadAttributeList(ptr::null_mut(), 1, 0, &raw mut n_bytes);
            let mut list = vec![0usize; n_bytes.div_ceil(size_of::<usize>())];
            let start: LPPROC_THREAD_ATTRIBUTE_LIST = list.as_mut_ptr().cast();
            check_bool(InitializeProcThreadAttributeList(start, 1, 0, &raw mut n_bytes))?;
            let attribute = Self(list);
            check_bool(UpdateProcThreadAttribute(
                start,
                0,
                PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE as usize,
                ptr::with_exposed_provenance(console.0.cast_unsigned()),
                size_of::<HPCON>(),
                ptr::null_mut(),
                ptr::null(),
            ))?;
            Ok(attribute)
        }
    }

    fn list(&self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        self.0.as_ptr().cast_mut().cast()
    }
}

impl Drop for ConsoleAttribute {
    fn drop(&mut self) {
        #[expect(unsafe_code, reason = "the standard library has no attribute lists")]
        // SAFETY: the list was initialized, and is freed once.
        unsafe {
            DeleteProcThreadAttributeList(self.list());
        }
    }
}

fn wait_for_exit(process: &OwnedHandle) -> io::Result<ExitStatus> {
    let mut exit_code = 0;
    #[expect(unsafe_code, reason = "the standard library did not start it")]
    // SAFETY: the handle is open, and the result is written to a value that lives until the call returns.
    unsafe {
        if WaitForSingleObject(process.as_raw_handle(), INFINITE) != WAIT_OBJECT_0 {
            return Err(io::Error::last_os_error());
        }
        check_bool(GetExitCodeProcess(process.as_raw_handle(), &raw mut exit_code))?;
    }
    Ok(ExitStatus::from_raw(exit_code))
}
