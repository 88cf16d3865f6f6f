//! The directories of tasks, and the conversations with which this or another worker may go on: a file for each. A worker
//! finds both again after it was killed, and so does one that shares its disk and its database.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use tokio::fs;

use crate::record::TaskDelivery;
use crate::subject::random_name;
use crate::ticket::{SignedKind, TaskTicket};

/// The directory of the tasks' directories.
const TASKS_DIR: &str = "tasks";

/// The directory of the files.
const CONVERSATIONS_DIR: &str = "conversations";

/// The longest file that is read.
const FILE_BYTES_MAX: u64 = 4 * 1024;

/// Characters of the random part of a directory's name.
const RANDOM_CHARS: usize = 8;

/// Time between two looks for what nothing can go on with.
const REMOVAL_INTERVAL: Duration = Duration::from_secs(24 * 3600);

/// A conversation that can go on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptTask {
    pub(super) session: String,
    /// The working directory with which the session began.
    pub(super) first_cwd: PathBuf,
    /// The name of the directory.
    pub(super) directory: String,
    /// The delivery in which it was here.
    pub(super) delivery: TaskDelivery,
}

/// The directories and conversations of tasks.
#[derive(Debug, Clone)]
pub(super) struct KeptTasks {
    tasks_dir: PathBuf,
    conversations_dir: PathBuf,
}

impl KeptTasks {
    pub(super) fn new(workspaces_dir: &Path) -> Self {
        Self {
            tasks_dir: workspaces_dir.join(TASKS_DIR),
            conversations_dir: workspaces_dir.join(CONVERSATIONS_DIR),
        }
    }

    /// Makes an empty directory for a task and returns its name: that of another machine, if it is free, because the conversation
    /// has its paths. The error is the reason.
    pub(super) async fn make_directory(&self, task: &str, wanted: Option<&str>) -> Result<String, String> {
        let random = random_name()?;
        let name = format!("{task}-{}", &random[..RANDOM_CHARS]);
        let made = async {
            fs::create_dir_all(&self.tasks_dir).await?;
            if let Some(wanted) = wanted.filter(|wanted| is_directory_name(wanted, task))
                && fs::create_dir(self.directory(wanted)).await.is_ok()
            {
                return Ok(wanted.to_owned());
            }
            fs::create_dir(self.directory(&name)).await?;
            Ok(name)
        };
        made.await.map_err(|error: io::Error| error.to_string())
    }

    pub(super) fn directory(&self, name: &str) -> PathBuf {
        self.tasks_dir.join(name)
    }

    fn file(&self, task: &str) -> PathBuf {
        self.conversations_dir.join(task)
    }

    /// Returns the conversation of a task whose directory is there. The file is signed, since other parents may
    /// know the name of the task.
    pub(super) async fn find(&self, task: &str, ticket: &TaskTicket) -> Option<KeptTask> {
        let file = self.file(task);
        let metadata = fs::symlink_metadata(&file).await.ok()?;
        if !metadata.is_file() || metadata.len() > FILE_BYTES_MAX {
            return None;
        }
        let bytes = fs::read(&file).await.ok()?;
        let kept: KeptTask = serde_json::from_slice(ticket.verify(SignedKind::Conversation, &bytes)?).ok()?;
        // A parent has the ticket as well, and perhaps an agent here that writes what it likes.
        if !is_directory_name(&kept.directory, task) {
            return None;
        }
        let directory = fs::symlink_metadata(self.directory(&kept.directory)).await.ok()?;
        directory.is_dir().then_some(kept)
    }

    /// Keeps a conversation.
    pub(super) async fn keep(&self, task: &str, kept: &KeptTask, ticket: &TaskTicket) -> io::Result<()> {
        let bytes = ticket.sign(SignedKind::Conversation, serde_json::to_vec(kept)?);
        fs::create_dir_all(&self.conversations_dir).await?;
        // No name of a task has a dot.
        let unfinished = self.conversations_dir.join(format!("{task}.new"));
        fs::write(&unfinished, bytes).await?;
        fs::rename(&unfinished, self.file(task)).await
    }

    /// Forgets the conversation of a task that nothing goes on with.
    pub(super) async fn forget(&self, task: &str) {
        match fs::remove_file(self.file(task)).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, task, "the conversation of a task could not be forgotten");
            }
            Ok(()) | Err(_) => {}
        }
    }

    /// Removes again and again what is as old as this, and so has no task any more.
    pub(super) async fn remove_abandoned(&self, age_max: Duration) {
        loop {
            for directory in [&self.conversations_dir, &self.tasks_dir] {
                if let Err(error) = remove_old_entries(directory, age_max).await {
                    tracing::debug!(%error, directory = %directory.display(), "nothing was removed");
                }
            }
            tokio::time::sleep(REMOVAL_INTERVAL).await;
        }
    }
}

/// Whether a name can be that of the directory of a task.
fn is_directory_name(name: &str, task: &str) -> bool {
    let random = name.strip_prefix(task).and_then(|name| name.strip_prefix('-'));
    random.is_some_and(|random| {
        random.len() == RANDOM_CHARS && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

async fn remove_old_entries(directory: &Path, age_max: Duration) -> io::Result<()> {
    let now = SystemTime::from(jiff::Timestamp::now());
    let mut entries = fs::read_dir(directory).await?;
    while let Some(entry) = entries.next_entry().await? {
        let metadata = entry.metadata().await?;
        if now.duration_since(metadata.modified()?).is_ok_and(|age| age > age_max) {
            match metadata.is_dir() {
                true => fs::remove_dir_all(entry.path()).await?,
                false => fs::remove_file(entry.path()).await?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn kept_in(directory: String) -> KeptTask {
        let delivery = TaskDelivery { sequence: 1, number: 1 };
        KeptTask { session: "s".to_owned(), first_cwd: "/first".into(), directory, delivery }
    }

    #[tokio::test]
    async fn directory_has_the_name_that_it_had_elsewhere_if_that_is_free() {
        let workspaces = tempfile::tempdir().unwrap();
        let tasks = KeptTasks::new(workspaces.path());
        assert_eq!(tasks.make_directory("t", Some("t-01234567")).await.unwrap(), "t-01234567");
        for wanted in ["t-01234567", "u-01234567", "t-../../x", "t-", ""] {
            let made = tasks.make_directory("t", Some(wanted)).await.unwrap();
            assert!(made != wanted && is_directory_name(&made, "t"), "{made}");
        }
    }

    #[tokio::test]
    async fn conversation_is_found_by_who_has_its_ticket_while_its_directory_is_there() {
        let workspaces = tempfile::tempdir().unwrap();
        let tasks = KeptTasks::new(workspaces.path());
        let (own, other) = (TaskTicket::for_test(1), TaskTicket::for_test(2));
        let directory = tasks.make_directory("t", None).await.unwrap();
        let kept = kept_in(directory);
        tasks.keep("t", &kept, &own).await.unwrap();
        let found = async |task, ticket| tasks.find(task, ticket).await.map(|found| found == kept);
        let mut log = format!("own: {:?}\n", found("t", &own).await);
        log += &format!("another ticket: {:?}\n", found("t", &other).await);
        log += &format!("another task: {:?}\n", found("u", &own).await);
        for directory in ["t-0/../../..", "u-01234567", "t-0/1/2/3/"] {
            fs::create_dir_all(tasks.directory(directory)).await.unwrap();
            tasks
                .keep("t", &KeptTask { directory: directory.to_owned(), ..kept.clone() }, &own)
                .await
                .unwrap();
            log += &format!("in {directory}: {:?}\n", found("t", &own).await);
        }
        tasks.keep("t", &kept, &own).await.unwrap();
        fs::remove_dir(tasks.directory(&kept.directory)).await.unwrap();
        log += &format!("without its directory: {:?}\n", found("t", &own).await);
        tasks.make_directory("t", None).await.unwrap();
        log += &format!("with another directory: {:?}\n", found("t", &own).await);
        fs::create_dir(tasks.directory(&kept.directory)).await.unwrap();
        tasks.forget("t").await;
        log += &format!("forgotten: {:?}\n", found("t", &own).await);
        expect![[r#"
            own: Some(true)
            another ticket: None
            another task: None
            in t-0/../../..: None
            in u-01234567: None
            in t-0/1/2/3/: None
            without its directory: None
            with another directory: None
            forgotten: None
        "#]]
        .assert_eq(&log);
    }

    #[tokio::test]
    async fn old_entries_are_removed() {
        let workspaces = tempfile::tempdir().unwrap();
        let tasks = KeptTasks::new(workspaces.path());
        let hour = Duration::from_secs(3600);
        let long_ago = SystemTime::from(jiff::Timestamp::now()) - 2 * hour;
        for (task, is_old) in [("new", false), ("old", true)] {
            let kept = kept_in(tasks.make_directory(task, None).await.unwrap());
            tasks.keep(task, &kept, &TaskTicket::for_test(1)).await.unwrap();
            fs::write(tasks.directory(&kept.directory).join("file"), "").await.unwrap();
            for path in [tasks.directory(&kept.directory), tasks.file(task)] {
                if is_old {
                    std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
                }
            }
        }
        for directory in [&tasks.conversations_dir, &tasks.tasks_dir] {
            remove_old_entries(directory, hour).await.unwrap();
        }
        let is_there = async |task| tasks.find(task, &TaskTicket::for_test(1)).await.is_some();
        assert_eq!((is_there("new").await, is_there("old").await), (true, false));
        assert_eq!(std::fs::read_dir(&tasks.tasks_dir).unwrap().count(), 1);
    }
}
