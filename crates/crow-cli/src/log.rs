//! Crow's log: a file of limited size, and stderr on request.

mod session;

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use crow_telemetry::{TelemetryConfig, TelemetryGuard, TelemetryLayer, start_export};
use tracing::Level;
use tracing_subscriber::{
    Layer, Registry,
    filter::Targets,
    fmt::{self, MakeWriter},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

use self::session::SessionLogs;
pub(crate) use self::session::enable_session_logs;
use crate::settings::Environment;

/// The version of the spans.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A file of this size still opens in an editor.
const FILE_BYTES_MAX: u64 = 5 * 1024 * 1024;

/// Older files kept; `crow-cli.log.1` is the newest of them.
const OLD_FILES: u32 = 2;

/// Directory of session logs, next to the log.
const SESSIONS_DIR: &str = "sessions";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogVerbosity {
    /// Only what matters, to the file.
    Normal,
    /// Everything, also to stderr.
    Verbose,
}

/// Whether the stderr of child processes is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StderrLogging {
    /// Not logged: it may quote the user.
    Off,
    /// Logged, together with our own messages from this level: users of the bridge look for it there.
    Programs(Level),
}

/// Default path of the log.
pub(crate) fn default_log_file(dir: &Path) -> PathBuf {
    dir.join("logs/crow-cli.log")
}

/// Starts logging to `DIR/logs/crow-cli.log`. The file is created with the first line, so that a quiet run leaves none.
pub(crate) fn start_logging(dir: &Path, verbosity: LogVerbosity) {
    start_logging_to(default_log_file(dir), verbosity, StderrLogging::Off);
}

/// Starts logging as [`start_logging`] does, and the export of spans if the environment names a collector. The export
/// ends with the guard.
#[must_use = "the last spans are sent when it is dropped"]
pub(crate) fn start_logging_and_export(
    dir: &Path,
    env: &Environment,
    verbosity: LogVerbosity,
) -> Option<TelemetryGuard> {
    let variable = |name: &str| env.get(name).map(String::as_str);
    let started = match TelemetryConfig::from_variables(variable, VERSION) {
        Ok(config) => config.map(|config| start_export(config, VERSION)).transpose(),
        Err(error) => Err(io::Error::other(error.to_string())),
    };
    let (started, problem) = match started {
        Ok(started) => (started, None),
        Err(error) => (None, Some(error)),
    };
    let (layer, guard) = started.unzip();
    init_subscriber(default_log_file(dir), verbosity, StderrLogging::Off, layer);
    if let Some(error) = problem {
        tracing::warn!(%error, "no spans are exported");
    }
    guard
}

/// Starts logging to a file, which is created with the first line.
pub(crate) fn start_logging_to(file: PathBuf, verbosity: LogVerbosity, stderr_logging: StderrLogging) {
    init_subscriber(file, verbosity, stderr_logging, None);
}

fn init_subscriber(
    file: PathBuf,
    verbosity: LogVerbosity,
    stderr_logging: StderrLogging,
    telemetry: Option<TelemetryLayer>,
) {
    // Only our own messages: libraries log their data, prompts and keys included.
    let own_targets = |level: Level| Targets::new().with_target("crow", level);
    let file_filter = match stderr_logging {
        StderrLogging::Off => own_targets(Level::INFO),
        StderrLogging::Programs(level) => {
            own_targets(level).with_target("crow_process::stderr", Level::DEBUG)
        }
    };
    let sessions = file.parent().map(|directory| SessionLogs::in_dir(directory.join(SESSIONS_DIR)));
    let session_filter = own_targets(Level::INFO).with_target(crow_agent::SESSION_SPAN, Level::INFO);
    let sessions = sessions.map(|sessions| sessions.with_filter(session_filter));
    let file = RotatingLog { file, current: Mutex::default() };
    let file = fmt::layer().with_writer(file).with_ansi(false).with_filter(file_filter);
    let stderr = (verbosity == LogVerbosity::Verbose).then(|| {
        let layer = fmt::layer().with_writer(io::stderr).with_ansi(console::colors_enabled_stderr());
        layer.with_filter(own_targets(Level::DEBUG))
    });
    let telemetry = telemetry.map(TelemetryLayer::into_filtered);
    Registry::default().with(file).with(sessions).with(stderr).with(telemetry).init();
}

/// A log file with its older files.
struct RotatingLog {
    file: PathBuf,
    current: Mutex<Option<(File, u64)>>,
}

impl RotatingLog {
    fn path_by_age(&self, age: u32) -> PathBuf {
        let mut path = self.file.clone().into_os_string();
        if age > 0 {
            path.push(format!(".{age}"));
        }
        path.into()
    }

    fn open_file(&self) -> io::Result<(File, u64)> {
        if let Some(directory) = self.file.parent() {
            crow_files::create_private_dir(directory)?;
        }
        let file = crow_files::private_file_options().append(true).create(true).open(&self.file)?;
        let n_bytes = file.metadata()?.len();
        Ok((file, n_bytes))
    }

    fn write_line(&self, line: &[u8]) -> io::Result<()> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut file, n_bytes) = match current.take() {
            Some((_, n_bytes)) if n_bytes >= FILE_BYTES_MAX => {
                self.rotate()?;
                self.open_file()?
            }
            Some(current) => current,
            None => self.open_file()?,
        };
        file.write_all(line)?;
        *current = Some((file, n_bytes + line.len() as u64));
        Ok(())
    }

    /// Renames each file to the next older one; the oldest is overwritten.
    fn rotate(&self) -> io::Result<()> {
        for age in (0..OLD_FILES).rev() {
            match fs::rename(self.path_by_age(age), self.path_by_age(age + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for RotatingLog {
    type Writer = &'a Self;

    fn make_writer(&'a self) -> Self::Writer {
        self
    }
}

/// Each write is one whole line.
impl Write for &RotatingLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.write_line(line).map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_file_is_rotated_and_the_oldest_removed() {
        let directory = tempfile::tempdir().unwrap();
        let log = RotatingLog { file: default_log_file(directory.path()), current: Mutex::default() };
        let full = vec![b'x'; usize::try_from(FILE_BYTES_MAX).unwrap()];
        for round in 0..5 {
            log.write_line(format!("round {round}\n").as_bytes()).unwrap();
            log.write_line(&full).unwrap();
        }
        let first_line = |age| {
            let text = fs::read_to_string(log.path_by_age(age)).unwrap();
            text.lines().next().unwrap().to_owned()
        };
        assert_eq!([first_line(0), first_line(1), first_line(2)], ["round 4", "round 3", "round 2"]);
        assert!(!log.path_by_age(3).exists());
    }

    #[test]
    fn files_are_readable_by_their_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().unwrap();
        let log = RotatingLog { file: default_log_file(directory.path()), current: Mutex::default() };
        log.write_line(b"hello\n").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&directory.path().join("logs")), mode(&log.path_by_age(0))), (0o700, 0o600));
    }
}
