//! A program that runs on by itself: looked at, typed to and ended from elsewhere, gone with its last handle.

use std::{io, time::Duration};

use tokio::{
    sync::{mpsc, oneshot, watch},
    time::{Instant, sleep_until, timeout_at},
};

use crate::{Ended, Happened, Output, Program, output::Collector, program::Nobody, terminal::TerminalInput};

/// Whoever holds a job waits for its answer, so one order is at work and few wait.
const ORDERS_LEN: usize = 4;

/// What may wait to be read by the program: a long paste.
const INPUT_BYTES_MAX: usize = 64 * 1024;

/// A terminal in its ordinary state drops what goes beyond 4096 bytes of one line.
const INPUT_LINE_BYTES_MAX: usize = 4000;

/// What is read of a job in one beat: nobody waits for its output, and everybody else has the same thread.
const BEAT_BYTES_MAX: usize = 256 * 1024;
const BEAT: Duration = Duration::from_millis(10);

/// How a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pulse {
    /// How much it said since it was last taken.
    pub n_unread: u64,
    /// How it ended, when it has.
    pub ended: Option<Ended>,
}

/// How long to wait for what a job says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// At most so long.
    pub within: Duration,
    /// Until it was quiet for so long.
    pub quiet: Duration,
    /// What it said counts from here on.
    pub n_unread_min: u64,
}

/// Why something could not be typed to a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unfed {
    /// It is gone.
    #[error("it has ended")]
    Ended,
    /// It was started without.
    #[error("it has no input")]
    NoInput,
    /// It does not read.
    #[error("it does not read what it was sent before")]
    Full,
    /// A terminal would cut it.
    #[error("a line of it is longer than {INPUT_LINE_BYTES_MAX} bytes, which may not arrive whole")]
    LongLine,
}

/// A program that runs on by itself. Dropping it kills the program at once.
#[derive(Debug)]
pub struct Job {
    orders: mpsc::Sender<Order>,
    pulse: watch::Receiver<Pulse>,
}

#[derive(Debug)]
enum Order {
    Take(oneshot::Sender<Output>),
    Feed(Vec<u8>, oneshot::Sender<Result<(), Unfed>>),
    Interrupt,
    End,
}

impl Job {
    pub(crate) fn start(program: Program, deadline: Instant) -> Self {
        let (orders, inbox) = mpsc::channel(ORDERS_LEN);
        let now = Pulse { n_unread: program.output.n_bytes(), ended: None };
        let (beats, pulse) = watch::channel(now);
        tokio::spawn(drive(program, inbox, beats, deadline));
        Self { orders, pulse }
    }

    /// Tells how it stands.
    pub fn pulse(&self) -> Pulse {
        *self.pulse.borrow()
    }

    /// Waits until it ended, or until it said something and then was quiet.
    pub async fn settled(&self, patience: Patience) {
        let mut pulse = self.pulse.clone();
        let deadline = Instant::now() + patience.within;
        loop {
            let now = *pulse.borrow_and_update();
            if now.ended.is_some() {
                return;
            }
            let until = match now.n_unread > patience.n_unread_min {
                true => deadline.min(Instant::now() + patience.quiet),
                false => deadline,
            };
            match timeout_at(until, pulse.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return,
            }
        }
    }

    /// Waits until it ended, at most so long.
    pub async fn ended(&self, within: Duration) {
        let mut pulse = self.pulse.clone();
        // Whether it did is in its pulse.
        let _ = timeout_at(Instant::now() + within, pulse.wait_for(|pulse| pulse.ended.is_some())).await;
    }

    /// Takes what it said since this was last done.
    pub async fn take(&self) -> Output {
        let (answer, taken) = oneshot::channel();
        // A job that broke says nothing more.
        let _ = self.orders.send(Order::Take(answer)).await;
        taken.await.unwrap_or_default()
    }

    /// Types to it.
    pub async fn feed(&self, bytes: Vec<u8>) -> Result<(), Unfed> {
        let (answer, fed) = oneshot::channel();
        let sent = self.orders.send(Order::Feed(bytes, answer)).await;
        sent.map_err(|_| Unfed::Ended)?;
        fed.await.unwrap_or(Err(Unfed::Ended))
    }

    /// Interrupts it, whether it can be typed to or not.
    pub async fn interrupt(&self) {
        let _ = self.orders.send(Order::Interrupt).await;
    }

    /// Ends it: it is asked to, and killed after a moment.
    pub async fn end(&self) {
        let mut pulse = self.pulse.clone();
        let _ = self.orders.send(Order::End).await;
        // An error means that nobody drives it any more.
        let _ = pulse.wait_for(|pulse| pulse.ended.is_some()).await;
    }
}

/// Drives a program until it ended and nobody wants what it said, or nobody wants it at all.
async fn drive(
    program: Program,
    mut orders: mpsc::Receiver<Order>,
    pulse: watch::Sender<Pulse>,
    deadline: Instant,
) {
    let Some((ended, mut output)) = live(program, &mut orders, &pulse, deadline).await else { return };
    pulse.send_replace(Pulse { n_unread: output.n_bytes(), ended: Some(ended) });
    while let Some(order) = orders.recv().await {
        match order {
            // What nobody waits for any longer is there for the next who asks.
            Order::Take(answer) if answer.is_closed() => {}
            Order::Take(answer) => give(output.take().await, answer, &pulse),
            Order::Feed(_, answer) => drop(answer.send(Err(Unfed::Ended))),
            Order::Interrupt | Order::End => {}
        }
    }
}

/// Drives a program to its end; `None` when nobody wants it before that.
async fn live(
    mut program: Program,
    orders: &mut mpsc::Receiver<Order>,
    pulse: &watch::Sender<Pulse>,
    deadline: Instant,
) -> Option<(Ended, Collector)> {
    let mut typed: Vec<u8> = Vec::new();
    let mut beat = Beat::begin();
    let happened = loop {
        tokio::select! {
            biased;
            order = orders.recv() => match order? {
                Order::Take(answer) if answer.is_closed() => {}
                Order::Take(answer) => give(program.output.take_so_far().await, answer, pulse),
                Order::Feed(bytes, answer) => {
                    let fed = accept(&program, &mut typed, &bytes);
                    // Whoever gave up waiting may look later.
                    let _ = answer.send(fed);
                }
                Order::Interrupt => program.group.interrupt(),
                Order::End => break Happened::Cut,
            },
            status = program.child.wait() => match status {
                Ok(status) => break Happened::Exited(status),
                Err(error) => {
                    tracing::warn!(%error, "could not wait for a program; it is ended");
                    break Happened::Cut;
                }
            },
            () = sleep_until(deadline) => break Happened::TimedOut,
            written = write(&mut program.input, &typed), if !typed.is_empty() => match written {
                Ok(n_bytes) => drop(typed.drain(..n_bytes)),
                Err(error) => {
                    tracing::debug!(%error, "a program takes no more input");
                    typed.clear();
                }
            },
            () = sleep_until(beat.next), if beat.is_over() => beat = Beat::begin(),
            read = program.source.read(&mut program.buffer), if !beat.is_over() => {
                beat.n_bytes += program.take(read, &mut Nobody).await;
                pulse.send_modify(|pulse| pulse.n_unread = program.output.n_bytes());
            }
        }
    };
    let ended = program.settle(happened, &mut Nobody).await;
    Some((ended, program.close(&mut Nobody).await))
}

fn give(taken: Output, answer: oneshot::Sender<Output>, pulse: &watch::Sender<Pulse>) {
    pulse.send_modify(|pulse| pulse.n_unread = 0);
    let _ = answer.send(taken);
}

fn accept(program: &Program, typed: &mut Vec<u8>, bytes: &[u8]) -> Result<(), Unfed> {
    if program.input.is_none() {
        return Err(Unfed::NoInput);
    }
    if bytes.split(|&byte| byte == b'\r').any(|line| line.len() > INPUT_LINE_BYTES_MAX) {
        return Err(Unfed::LongLine);
    }
    if typed.len() + bytes.len() > INPUT_BYTES_MAX {
        return Err(Unfed::Full);
    }
    typed.extend_from_slice(bytes);
    Ok(())
}

async fn write(input: &mut Option<TerminalInput>, bytes: &[u8]) -> io::Result<usize> {
    match input {
        Some(input) => input.write(bytes).await,
        None => Ok(bytes.len()),
    }
}

/// A short time, and what was read in it.
struct Beat {
    next: Instant,
    n_bytes: usize,
}

impl Beat {
    fn begin() -> Self {
        Self { next: Instant::now() + BEAT, n_bytes: 0 }
    }

    fn is_over(&self) -> bool {
        self.n_bytes >= BEAT_BYTES_MAX
    }
}
