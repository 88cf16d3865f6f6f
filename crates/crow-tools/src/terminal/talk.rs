//! Reading, typing to and ending the jobs that there are.

use std::time::Duration;

use crow_core::Status;
use crow_process::{Patience, Unfed};

use super::{
    LOOK_WAIT, QUIET,
    jobs::{Entry, Jobs, Place, end},
    keys::Typed,
    words::{Said, looked},
};
use crate::{
    ToolCx,
    tool::{CANCELLED, Refusal},
};

/// Reads a job. Somebody who says how long they wait waits for its end.
pub(super) async fn look(entry: &Entry, wait: Option<Duration>, cx: &ToolCx<'_>) -> Said {
    let waiting = async {
        match wait {
            Some(within) => entry.wait(within).await,
            None => {
                let patience = Patience { within: LOOK_WAIT, quiet: QUIET, n_unread_min: 0 };
                entry.settled(patience).await;
            }
        }
    };
    cx.cut.run_until_cancelled(waiting).await;
    see(entry, cx).await
}

/// Types to a job and reads what it answers.
pub(super) async fn type_to(
    entry: &Entry,
    typed: &Typed,
    wait: Option<Duration>,
    cx: &ToolCx<'_>,
) -> Result<Said, Refusal> {
    let Place::Here(job) = &entry.at else {
        let why = format!(
            "nothing can be typed to {}: it runs in the client's terminal, where only the person can; it can be read, \
             and ended with reset",
            entry.name
        );
        return Err(Refusal(why));
    };
    let may_run_code = !matches!(typed, Typed::Key { only_stops: true, .. });
    if may_run_code && cx.confinement > entry.confinement {
        let why = format!(
            "not typed: {} was started with more rights than this text would have as a command of its own; end it with \
             reset and start it again",
            entry.name
        );
        return Err(Refusal(why));
    }
    let n_unread = job.pulse().n_unread;
    match (job.feed(typed.bytes()).await, typed) {
        (Ok(()), _) => {}
        (Err(Unfed::NoInput), Typed::Key { interrupts: true, .. }) => job.interrupt().await,
        (Err(Unfed::NoInput), _) => {
            let why = format!(
                "nothing can be typed to {}: it was not started in the background and has no input; C-c interrupts it",
                entry.name
            );
            return Err(Refusal(why));
        }
        // Its end is what there is to see.
        (Err(Unfed::Ended), _) => return Ok(see(entry, cx).await),
        (Err(why @ (Unfed::Full | Unfed::LongLine)), _) => {
            return Err(Refusal(format!("not typed to {}: {why}", entry.name)));
        }
    }
    let patience = Patience {
        within: wait.unwrap_or(LOOK_WAIT),
        quiet: QUIET,
        n_unread_min: n_unread + typed.n_echoed(),
    };
    cx.cut.run_until_cancelled(job.settled(patience)).await;
    Ok(see(entry, cx).await)
}

/// Shows what a job said and how it stands.
async fn see(entry: &Entry, cx: &ToolCx<'_>) -> Said {
    // Looked at first: what ends meanwhile may have more to say.
    let ended = entry.ended();
    if ended.is_some() {
        entry.tell();
    }
    let output = entry.take(cx.cut).await;
    let said = looked(entry, ended.as_ref(), output);
    if cx.cut.is_cancelled() {
        return Said { text: format!("{}\n{CANCELLED}", said.text), status: Status::Failed };
    }
    said
}

/// Ends a job, or all of them, and tells which.
pub(super) async fn reset(jobs: &Jobs, name: Option<&str>) -> Result<String, Refusal> {
    let ending = jobs.remove(name)?;
    let lines: Vec<String> = ending
        .iter()
        .map(|entry| match entry.ended() {
            None => format!("ended {} {}", entry.name, entry.title),
            Some(_) => format!("{} {} had ended already", entry.name, entry.title),
        })
        .collect();
    end(&ending).await;
    Ok(if lines.is_empty() { "there was no job to end".into() } else { lines.join("\n") })
}
