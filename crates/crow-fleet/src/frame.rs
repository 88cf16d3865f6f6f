//! The frames that carry lines: parts of lines in order, with acknowledgements. A frame is signed, and of one epoch: what
//! an earlier delivery of the task, or an earlier attachment of its parent, still sends is dropped.

use crate::ticket::{SignedKind, TaskTicket};

/// The longest part of a line in one frame, far below the payload limit of a server.
pub(crate) const PART_BYTES_MAX: usize = 128 * 1024;

/// Bytes in front of the part.
const HEADER_LEN: usize = 38;

const VERSION: u8 = 1;

/// The time for which two ends talk to each other; a later one is greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FrameEpoch {
    /// The sequence of the task's message.
    pub(crate) sequence: u64,
    /// The number of deliveries of the message.
    pub(crate) delivery: u32,
    /// The moment when the parent attached.
    pub(crate) attachment: u64,
}

/// A frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LineFrame {
    pub(crate) epoch: FrameEpoch,
    /// The last part that was received in order.
    pub(crate) acknowledged: u64,
    /// `None` only acknowledges.
    pub(crate) part: Option<LinePart>,
}

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LinePart {
    /// From 1 on.
    pub(crate) number: u64,
    pub(crate) is_last: bool,
    pub(crate) bytes: Vec<u8>,
}

impl LineFrame {
    /// Encodes and signs it.
    pub(crate) fn encode(&self, kind: SignedKind, ticket: &TaskTicket) -> Vec<u8> {
        let Self { epoch, acknowledged, part } = self;
        let part_len = part.as_ref().map_or(0, |part| part.bytes.len());
        let mut bytes = Vec::with_capacity(HEADER_LEN + part_len + crate::ticket::SIGNATURE_LEN);
        bytes.push(VERSION);
        bytes.extend_from_slice(&epoch.sequence.to_be_bytes());
        bytes.extend_from_slice(&epoch.delivery.to_be_bytes());
        bytes.extend_from_slice(&epoch.attachment.to_be_bytes());
        bytes.extend_from_slice(&acknowledged.to_be_bytes());
        bytes.extend_from_slice(&part.as_ref().map_or(0, |part| part.number).to_be_bytes());
        bytes.push(u8::from(part.as_ref().is_some_and(|part| part.is_last)));
        bytes.extend(part.iter().flat_map(|part| &part.bytes));
        ticket.sign(kind, bytes)
    }

    /// Decodes a frame with a valid signature.
    pub(crate) fn decode(signed: &[u8], kind: SignedKind, ticket: &TaskTicket) -> Option<Self> {
        let bytes = ticket.verify(kind, signed)?;
        let (header, rest) = bytes.split_at_checked(HEADER_LEN)?;
        let number_at = |from: usize| {
            header[from..from + 8].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
        };
        let delivery = header[9..13].iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
        let epoch = FrameEpoch { sequence: number_at(1), delivery, attachment: number_at(13) };
        let (acknowledged, number) = (number_at(21), number_at(29));
        let part = (number > 0).then(|| LinePart {
            number,
            is_last: header[HEADER_LEN - 1] == 1,
            bytes: rest.to_vec(),
        });
        let is_valid = header[0] == VERSION
            && rest.len() <= PART_BYTES_MAX
            && header[HEADER_LEN - 1] <= 1
            && (part.is_some() || rest.is_empty());
        is_valid.then_some(Self { epoch, acknowledged, part })
    }
}
