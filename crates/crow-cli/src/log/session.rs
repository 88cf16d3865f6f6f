//! Optional logs per session: the lines of the log that concern it.

use std::{
    collections::HashMap,
    fmt::{Debug, Write as _},
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::SystemTime as FileTime,
};

use tracing::{
    Event, Id, Subscriber,
    field::{Field, Visit},
    span::Attributes,
};
use tracing_subscriber::{
    Layer,
    fmt::{
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    layer::Context,
    registry::LookupSpan,
};

use super::RotatingLog;

/// Session logs kept; the least recently written is removed first.
const FILES_MAX: usize = 200;

/// Files open at once.
const OPEN_MAX: usize = 16;

/// The field with the session's name.
const FIELD: &str = "session";

/// Whether session logs are enabled; the configuration is read after logging starts.
static IS_ENABLED: AtomicBool = AtomicBool::new(false);

/// Enables or disables session logs from now on.
pub(crate) fn enable_session_logs(is_enabled: bool) {
    IS_ENABLED.store(is_enabled, Ordering::Relaxed);
}

/// Writes a session's lines to a file of its own.
pub(super) struct SessionLogs {
    directory: PathBuf,
    open: Mutex<HashMap<String, Arc<RotatingLog>>>,
}

/// The session of a span.
struct SessionName(String);

impl SessionLogs {
    pub(super) fn in_dir(directory: PathBuf) -> Self {
        Self { directory, open: Mutex::default() }
    }

    fn session_log(&self, session: &str) -> Option<Arc<RotatingLog>> {
        if !is_file_name(session) {
            return None;
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(log) = open.get(session) {
            return Some(log.clone());
        }
        if open.len() >= OPEN_MAX {
            open.clear();
        }
        remove_oldest(&self.directory);
        let log =
            RotatingLog { file: self.directory.join(format!("{session}.log")), current: Mutex::default() };
        let log = Arc::new(log);
        open.insert(session.to_owned(), log.clone());
        Some(log)
    }
}

/// Session names may come from other programs.
fn is_file_name(session: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    !session.is_empty() && session.len() <= 100 && session.chars().all(is_allowed)
}

/// Removes the oldest files to make room for one more.
fn remove_oldest(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let modified = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let mut files: Vec<(Option<FileTime>, PathBuf)> = paths.map(|path| (modified(&path), path)).collect();
    files.sort();
    let n_excess = (files.len() + 1).saturating_sub(FILES_MAX);
    for (_, path) in files.into_iter().take(n_excess) {
        // Another process may have removed it.
        let _ = fs::remove_file(path);
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SessionLogs {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut line = Line::default();
        attributes.record(&mut line);
        if let (Some(span), Some(session)) = (context.span(id), line.session) {
            span.extensions_mut().insert(SessionName(session));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        if !IS_ENABLED.load(Ordering::Relaxed) {
            return;
        }
        let mut line = Line::default();
        event.record(&mut line);
        let from_span = || {
            let mut spans = context.event_scope(event)?;
            spans.find_map(|span| Some(span.extensions().get::<SessionName>()?.0.clone()))
        };
        let Some(log) = line.session.take().or_else(from_span).and_then(|session| self.session_log(&session))
        else {
            return;
        };
        let mut time = String::new();
        // Writing to a string cannot fail.
        let _ = SystemTime.format_time(&mut Writer::new(&mut time));
        let (level, target) = (event.metadata().level(), event.metadata().target());
        let text = format!("{time} {level:>5} {target}:{}{}", line.message, line.fields);
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        // A failure to write the log cannot be reported.
        let _ = log.write_line(format!("{text}\n").as_bytes());
    }
}

/// The fields of an event.
#[derive(Default)]
struct Line {
    session: Option<String>,
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string cannot fail.
        let _ = match field.name() {
            FIELD => {
                self.session = Some(format!("{value:?}"));
                Ok(())
            }
            "message" => write!(self.message, " {value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn files_are_private_and_limited_in_number() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("sessions");
        let logs = SessionLogs::in_dir(directory.clone());
        for number in 0..FILES_MAX + 5 {
            logs.session_log(&format!("s-{number}")).unwrap().write_line(b"hello\n").unwrap();
        }
        let names: Vec<PathBuf> =
            fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(names.len(), FILES_MAX);
        let modes = names.iter().map(|path| fs::metadata(path).unwrap().permissions().mode() & 0o777);
        assert!(modes.into_iter().all(|mode| mode == 0o600));
        assert!(logs.open.lock().unwrap().len() <= OPEN_MAX);
        for name in ["", ".", "..", "a/b", "a.b", &"a".repeat(101)] {
            assert!(logs.session_log(name).is_none(), "{name}");
        }
    }
}
