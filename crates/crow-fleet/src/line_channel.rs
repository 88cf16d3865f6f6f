//! One end of the lines between parent and worker: what is lost is sent again, what comes twice or out of order is dropped,
//! and no more is under way than the other end has room for. Pure: time is an argument.

use std::collections::VecDeque;
use std::time::Duration;

use crate::frame::{FrameEpoch, LineFrame, LinePart, PART_BYTES_MAX};

/// Frames under way; fewer than a subscription holds, which drops what is too much.
pub(crate) const WINDOW_FRAMES: usize = 64;

/// Bytes under way, and bytes that wait to be sent.
const WINDOW_BYTES: usize = 1024 * 1024;

/// The longest line; the largest prompts and diffs are shorter.
pub(crate) const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Time without an acknowledgement after which everything under way is sent again; a server answers in milliseconds.
const RESEND_AFTER: Duration = Duration::from_secs(1);

/// Time after which an end that has nothing to say shows that it is there.
const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(10);

/// Time after which an end that says nothing is considered gone.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// One end of a channel of lines.
#[derive(Debug)]
pub(crate) struct LineChannel {
    epoch: FrameEpoch,
    /// Parts without an acknowledgement; the first `n_under_way` were sent.
    outgoing: VecDeque<LinePart>,
    n_under_way: usize,
    n_outgoing_bytes: usize,
    n_bytes_under_way: usize,
    /// The number of the last part that was queued.
    last_number: u64,
    /// The last part that was received in order.
    received: u64,
    /// The parts of a line whose end has not come.
    unfinished: Vec<u8>,
    must_acknowledge: bool,
    /// True once the other end has answered.
    is_confirmed: bool,
    last_sent: Duration,
    last_progress: Duration,
    last_received: Duration,
}

/// The other end does not keep to the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LineTooLong;

impl LineChannel {
    /// Creates the end that opens the channel: it says so until the other one answers.
    pub(crate) fn open(epoch: FrameEpoch, now: Duration) -> Self {
        Self {
            epoch,
            outgoing: VecDeque::new(),
            n_under_way: 0,
            n_outgoing_bytes: 0,
            n_bytes_under_way: 0,
            last_number: 0,
            received: 0,
            unfinished: Vec::new(),
            must_acknowledge: true,
            is_confirmed: false,
            last_sent: now,
            last_progress: now,
            last_received: now,
        }
    }

    /// Creates the end that answers.
    pub(crate) fn accept(epoch: FrameEpoch, now: Duration) -> Self {
        Self { is_confirmed: true, ..Self::open(epoch, now) }
    }

    pub(crate) fn epoch(&self) -> FrameEpoch {
        self.epoch
    }

    /// Whether another line may be queued.
    pub(crate) fn has_room(&self) -> bool {
        self.n_outgoing_bytes < WINDOW_BYTES
    }

    /// Whether the other end has received everything.
    pub(crate) fn is_delivered(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Whether the other end has said nothing for too long.
    pub(crate) fn is_silent(&self, now: Duration) -> bool {
        now.saturating_sub(self.last_received) >= SILENCE_MAX
    }

    /// Queues a line; the error says that it is too long.
    pub(crate) fn push_line(&mut self, line: &str) -> Result<(), LineTooLong> {
        if line.len() > LINE_BYTES_MAX {
            return Err(LineTooLong);
        }
        let parts = line.as_bytes().chunks(PART_BYTES_MAX);
        let n_parts = parts.len().max(1);
        let empty: &[u8] = &[];
        let parts = parts.chain(line.is_empty().then_some(empty));
        for (index, bytes) in parts.enumerate() {
            self.last_number += 1;
            self.n_outgoing_bytes += bytes.len();
            let (number, is_last) = (self.last_number, index + 1 == n_parts);
            self.outgoing.push_back(LinePart { number, is_last, bytes: bytes.to_vec() });
        }
        Ok(())
    }

    /// Handles a frame of the same epoch; returns a line that it completes.
    pub(crate) fn handle_frame(
        &mut self,
        frame: LineFrame,
        now: Duration,
    ) -> Result<Option<String>, LineTooLong> {
        self.is_confirmed = true;
        self.last_received = now;
        while let Some(part) = self.outgoing.front()
            && part.number <= frame.acknowledged
            && self.n_under_way > 0
        {
            self.n_under_way -= 1;
            self.n_bytes_under_way -= part.bytes.len();
            self.n_outgoing_bytes -= part.bytes.len();
            self.outgoing.pop_front();
            self.last_progress = now;
        }
        let Some(part) = frame.part else { return Ok(None) };
        // The other end waits for this also where it was lost.
        self.must_acknowledge = true;
        if part.number != self.received + 1 {
            return Ok(None);
        }
        if self.unfinished.len() + part.bytes.len() > LINE_BYTES_MAX {
            return Err(LineTooLong);
        }
        self.received = part.number;
        self.unfinished.extend_from_slice(&part.bytes);
        if !part.is_last {
            return Ok(None);
        }
        let line = std::mem::take(&mut self.unfinished);
        Ok(Some(String::from_utf8_lossy(&line).into_owned()))
    }

    /// Returns the next frame to send, if there is one at this time.
    pub(crate) fn next_frame(&mut self, now: Duration) -> Option<LineFrame> {
        if self.n_under_way > 0 && now.saturating_sub(self.last_progress) >= RESEND_AFTER {
            (self.n_under_way, self.n_bytes_under_way) = (0, 0);
        }
        let part = self.outgoing.get(self.n_under_way).filter(|part| {
            let n_bytes = self.n_bytes_under_way + part.bytes.len();
            self.n_under_way < WINDOW_FRAMES && n_bytes <= WINDOW_BYTES
        });
        let part = part.cloned();
        if let Some(part) = &part {
            if self.n_under_way == 0 {
                self.last_progress = now;
            }
            self.n_under_way += 1;
            self.n_bytes_under_way += part.bytes.len();
        } else if !self.must_acknowledge && now < self.idle_deadline() {
            return None;
        }
        self.must_acknowledge = false;
        self.last_sent = now;
        Some(LineFrame { epoch: self.epoch, acknowledged: self.received, part })
    }

    /// Returns the time from which [`Self::next_frame`] may return a frame, or [`Self::is_silent`] be true.
    pub(crate) fn next_deadline(&self) -> Duration {
        let resend = (self.n_under_way > 0).then_some(self.last_progress + RESEND_AFTER);
        let next = resend.map_or(self.idle_deadline(), |resend| resend.min(self.idle_deadline()));
        next.min(self.last_received + SILENCE_MAX)
    }

    fn idle_deadline(&self) -> Duration {
        let idle = if self.is_confirmed { KEEP_ALIVE_AFTER } else { RESEND_AFTER };
        self.last_sent + idle
    }
}
