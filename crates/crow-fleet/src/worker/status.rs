//! The state of a worker, for an operator who asks.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_nats::Client;
use futures_util::StreamExt;
use serde::{Deserialize, Serialize};

use crate::subject::{is_subject_token, status_subject};

/// Letters of a system's name or a version.
const WORD_LEN_MAX: usize = 32;

/// The state of a worker, as it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerStatus {
    pub worker: String,
    pub queue: String,
    pub slots: u32,
    /// Tasks that run now.
    pub running: u32,
    /// Tasks that have ended here since the worker started.
    pub ended: u64,
    /// Tokens of all these tasks, as far as their agents say.
    pub tokens: u64,
    /// The operating system and the processor, as Rust names them.
    pub os: String,
    pub arch: String,
    /// The version of Crow.
    pub version: String,
}

impl WorkerStatus {
    /// Decodes an answer, which anyone may have sent.
    pub(crate) fn decode(payload: &[u8]) -> Option<Self> {
        let status: Self = serde_json::from_slice(payload).ok()?;
        let is_word = |word: &String| {
            word.len() <= WORD_LEN_MAX
                && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.+".contains(&byte))
        };
        let are_names = is_subject_token(&status.worker) && is_subject_token(&status.queue);
        (are_names && [&status.os, &status.arch, &status.version].into_iter().all(is_word)).then_some(status)
    }
}

/// The state that a worker keeps of itself.
#[derive(Debug)]
pub(super) struct WorkerCounts {
    /// The state without its counts and queue.
    idle: WorkerStatus,
    counts: Mutex<CountState>,
}

#[derive(Debug, Default)]
struct CountState {
    /// The tokens of each running task.
    running: HashMap<String, u64>,
    n_ended: u64,
    /// Tokens of ended tasks.
    n_tokens: u64,
}

impl WorkerCounts {
    pub(super) fn new(worker: String, n_slots: usize, version: &str) -> Self {
        let idle = WorkerStatus {
            worker,
            queue: String::new(),
            slots: u32::try_from(n_slots).unwrap_or(u32::MAX),
            running: 0,
            ended: 0,
            tokens: 0,
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            version: version.to_owned(),
        };
        Self { idle, counts: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, CountState> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts the tokens of a running task.
    pub(super) fn set_tokens(&self, task: &str, tokens: u64) {
        self.lock().running.insert(task.to_owned(), tokens);
    }

    /// Counts a task that is over here.
    pub(super) fn end_task(&self, task: &str) {
        let mut state = self.lock();
        state.n_ended += 1;
        let tokens = state.running.remove(task).unwrap_or_default();
        state.n_tokens = state.n_tokens.saturating_add(tokens);
    }

    fn status(&self, queue: &str) -> WorkerStatus {
        let state = self.lock();
        WorkerStatus {
            queue: queue.to_owned(),
            running: u32::try_from(state.running.len()).unwrap_or(u32::MAX),
            ended: state.n_ended,
            tokens: state.running.values().fold(state.n_tokens, |sum, tokens| sum.saturating_add(*tokens)),
            ..self.idle.clone()
        }
    }

    /// Answers operators who ask the workers of a queue, as long as the connection lasts. A user who may not listen to them runs tasks nevertheless.
    pub(super) async fn answer_operators(&self, client: &Client, queue: &str) {
        let mut questions = match client.subscribe(status_subject(queue)).await {
            Ok(questions) => questions,
            Err(error) => return tracing::debug!(%error, "operators cannot ask this worker"),
        };
        while let Some(question) = questions.next().await {
            let Some(reply) = question.reply else { continue };
            let answer = match serde_json::to_vec(&self.status(queue)) {
                Ok(answer) => answer,
                Err(error) => return tracing::warn!(%error, "the state of the worker could not be encoded"),
            };
            if let Err(error) = client.publish(reply, answer.into()).await {
                tracing::debug!(%error, "an operator got no answer");
            }
        }
    }
}
