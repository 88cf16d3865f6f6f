//! The subjects of a queue. A user of the NATS server may be limited to those with its own name.

/// Letters of a name in a subject.
const NAME_LEN_MAX: usize = 64;

/// Whether a name can be one part of a subject: at most 64 letters, digits, `-` and `_`.
pub fn is_subject_token(name: &str) -> bool {
    (1..=NAME_LEN_MAX).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// The names that identify a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaskAddress {
    pub(crate) queue: String,
    /// The name of the parent.
    pub(crate) parent: String,
    pub(crate) task: String,
}

impl TaskAddress {
    /// Parses the subject of a task message.
    pub(crate) fn parse_task_subject(subject: &str) -> Option<Self> {
        let parts: Vec<&str> = subject.split('.').collect();
        let ["crow", "task", queue, _lane, parent, task] = parts[..] else { return None };
        let is_valid = [queue, parent, task].into_iter().all(is_subject_token);
        let owned = || Self { queue: queue.to_owned(), parent: parent.to_owned(), task: task.to_owned() };
        is_valid.then(owned)
    }

    /// The subject of its message.
    pub(crate) fn task_subject(&self) -> String {
        let Self { queue, parent, task } = self;
        format!("crow.task.{queue}.{LANE}.{parent}.{task}")
    }

    /// The subject on which `worker` says that it has the task.
    pub(crate) fn taken_subject(&self, worker: &str) -> String {
        format!("{}.{TAKEN}", self.subject("record", worker))
    }

    /// The subject on which `worker` says how the task ended; `*` stands for any worker.
    pub(crate) fn end_subject(&self, worker: &str) -> String {
        format!("{}.{END}", self.subject("record", worker))
    }

    /// The subject on which `worker` says where another one could go on.
    pub(crate) fn saved_subject(&self, worker: &str) -> String {
        format!("{}.{SAVED}", self.subject("result", worker))
    }

    /// The subject of frames from `worker`.
    pub(crate) fn up_subject(&self, worker: &str) -> String {
        self.subject("up", worker)
    }

    /// The subject of frames to `worker`.
    pub(crate) fn down_subject(&self, worker: &str) -> String {
        self.subject("down", worker)
    }

    fn subject(&self, kind: &str, worker: &str) -> String {
        let Self { queue, parent, task } = self;
        format!("crow.{kind}.{queue}.{worker}.{parent}.{task}")
    }
}

/// The last part of the subject of a record that a worker has a task.
const TAKEN: &str = "taken";

/// The last part of the subject of a record of what a worker has saved. Each replaces the one before.
const SAVED: &str = "saved";

/// The last part of the subject of an end.
const END: &str = "end";

/// The lane of tasks whose parent waits for them.
pub(crate) const LANE: &str = "now";

/// The subjects of all tasks of a queue in a lane.
pub(crate) fn lane_filter(queue: &str) -> String {
    format!("crow.task.{queue}.{LANE}.>")
}

/// The subject on which the workers of a queue are asked what they do.
pub(crate) fn status_subject(queue: &str) -> String {
    format!("crow.status.{queue}")
}

/// The subjects of all records for a parent.
pub(crate) fn records_filter(queue: &str, parent: &str) -> String {
    format!("crow.record.{queue}.*.{parent}.>")
}

/// The parts of the subject of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordSubject<'a> {
    pub(crate) task: &'a str,
    /// Whether it is an end; otherwise a worker took the task or gave it back.
    pub(crate) is_end: bool,
}

impl<'a> RecordSubject<'a> {
    pub(crate) fn parse(subject: &'a str) -> Option<Self> {
        let mut parts = subject.strip_prefix("crow.record.")?.split('.');
        let (_queue, _worker, _parent) = (parts.next()?, parts.next()?, parts.next()?);
        let (task, kind) = (parts.next()?, parts.next()?);
        let is_valid = parts.next().is_none() && [TAKEN, END].contains(&kind);
        is_valid.then_some(Self { task, is_end: kind == END })
    }
}

/// Makes a name that cannot be guessed.
pub(crate) fn random_name() -> Result<String, String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| format!("no random numbers: {error}"))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
