//! Frames and channels.

use std::time::Duration;

use proptest::prelude::*;

use crate::frame::{FrameEpoch, LineFrame, LinePart, PART_BYTES_MAX};
use crate::licence::{LicenceState, TaskLicence};
use crate::line_channel::{LINE_BYTES_MAX, LineChannel, LineTooLong, WINDOW_FRAMES};
use crate::ticket::{SignedKind, TaskTicket};

const EPOCH: FrameEpoch = FrameEpoch { sequence: 7, delivery: 1, attachment: 3 };

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

proptest! {
    #[test]
    fn frame_is_read_as_it_was_written(
        number in 0_u64..5, acknowledged: u64, is_last: bool, bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let ticket = TaskTicket::for_test(1);
        let part = (number > 0).then_some(LinePart { number, is_last, bytes });
        let frame = LineFrame { epoch: EPOCH, acknowledged, part };
        let encoded = frame.encode(SignedKind::UpFrame, &ticket);
        prop_assert_eq!(LineFrame::decode(&encoded, SignedKind::UpFrame, &ticket), Some(frame));
        prop_assert_eq!(LineFrame::decode(&encoded, SignedKind::DownFrame, &ticket), None);
        prop_assert_eq!(LineFrame::decode(&encoded, SignedKind::UpFrame, &TaskTicket::for_test(2)), None);
    }

    #[test]
    fn changed_frame_is_dropped(at in 0_usize..80, change in 1_u8..) {
        let ticket = TaskTicket::for_test(1);
        let part = Some(LinePart { number: 1, is_last: true, bytes: b"some line".to_vec() });
        let mut encoded = LineFrame { epoch: EPOCH, acknowledged: 0, part }.encode(SignedKind::UpFrame, &ticket);
        let at = at % encoded.len();
        encoded[at] ^= change;
        prop_assert_eq!(LineFrame::decode(&encoded, SignedKind::UpFrame, &ticket), None);
    }

    #[test]
    fn signed_nonsense_is_dropped(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let ticket = TaskTicket::for_test(1);
        let signed = ticket.sign(SignedKind::UpFrame, bytes);
        if let Some(frame) = LineFrame::decode(&signed, SignedKind::UpFrame, &ticket) {
            prop_assert_eq!(frame.encode(SignedKind::UpFrame, &ticket), signed);
        }
    }

    /// Every line arrives once and in order, whatever the network does to the frames.
    #[test]
    fn lines_arrive_once_and_in_order(
        lens in prop::collection::vec(0_usize..3 * PART_BYTES_MAX, 1..12),
        fates in prop::collection::vec(0_u8..8, 1..200),
    ) {
        check_delivery(&lens, &fates)?;
    }

    #[test]
    fn many_short_lines_arrive_once_and_in_order(n_lines in 1_usize..400, fates in prop::collection::vec(0_u8..8, 1..200)) {
        check_delivery(&vec![3; n_lines], &fates)?;
    }
}

/// A network with fates for its frames: lost, doubled, delayed behind the next, or delivered.
#[derive(Default)]
struct Network {
    delayed: Option<LineFrame>,
    n_frames: usize,
}

impl Network {
    fn pass(&mut self, frame: LineFrame, fates: &[u8]) -> Vec<LineFrame> {
        let fate = fates[self.n_frames % fates.len()];
        self.n_frames += 1;
        // In the end the network is kind; otherwise nothing would ever arrive.
        let is_kind = self.n_frames > fates.len();
        let mut arrived = match fate {
            0 if !is_kind => Vec::new(),
            1 => vec![frame.clone(), frame],
            2 if !is_kind && self.delayed.is_none() => {
                self.delayed = Some(frame);
                return Vec::new();
            }
            _ => vec![frame],
        };
        arrived.extend(self.delayed.take());
        arrived
    }
}

fn check_delivery(lens: &[usize], fates: &[u8]) -> Result<(), TestCaseError> {
    let lines: Vec<String> =
        lens.iter().enumerate().map(|(index, len)| format!("{index}:{}", "x".repeat(*len))).collect();
    let mut now = Duration::ZERO;
    let (mut sender, mut receiver) = (LineChannel::accept(EPOCH, now), LineChannel::open(EPOCH, now));
    let (mut to_receiver, mut to_sender) = (Network::default(), Network::default());
    let (mut unsent, mut received) = (lines.iter(), Vec::new());
    // Each round takes a second, after which everything under way is sent again.
    for _ in 0..10_000 {
        while sender.has_room()
            && let Some(line) = unsent.next()
        {
            sender.push_line(line).unwrap();
        }
        let mut n_sent = 0;
        while let Some(frame) = sender.next_frame(now) {
            n_sent += 1;
            prop_assert!(n_sent <= WINDOW_FRAMES + 1);
            for frame in to_receiver.pass(frame, fates) {
                received.extend(receiver.handle_frame(frame, now).unwrap());
            }
        }
        while let Some(frame) = receiver.next_frame(now) {
            for frame in to_sender.pass(frame, fates) {
                prop_assert_eq!(sender.handle_frame(frame, now).unwrap(), None);
            }
        }
        if sender.is_delivered() && unsent.len() == 0 {
            break;
        }
        now += seconds(1);
    }
    prop_assert!(sender.is_delivered());
    prop_assert!(received == lines);
    Ok(())
}

#[test]
fn silent_end_is_noticed_and_keeps_the_other_informed() {
    let mut channel = LineChannel::accept(EPOCH, seconds(0));
    assert!(channel.next_frame(seconds(0)).is_some(), "it answers");
    assert_eq!(channel.next_frame(seconds(9)), None);
    assert!(channel.next_frame(seconds(10)).is_some(), "it shows that it is there");
    assert!(!channel.is_silent(seconds(44)));
    assert!(channel.is_silent(seconds(45)));
}

#[test]
fn opening_is_repeated_until_it_is_answered() {
    let mut channel = LineChannel::open(EPOCH, seconds(0));
    let sent: Vec<u64> = (0..5).filter(|now| channel.next_frame(seconds(*now)).is_some()).collect();
    assert_eq!(sent, [0, 1, 2, 3, 4]);
    channel.handle_frame(LineFrame { epoch: EPOCH, acknowledged: 0, part: None }, seconds(5)).unwrap();
    assert_eq!(channel.next_frame(seconds(6)), None);
}

#[test]
fn acknowledgement_of_what_was_never_sent_changes_nothing() {
    let mut channel = LineChannel::accept(EPOCH, seconds(0));
    channel.push_line("one").unwrap();
    channel.handle_frame(LineFrame { epoch: EPOCH, acknowledged: 900, part: None }, seconds(0)).unwrap();
    assert!(!channel.is_delivered());
}

#[test]
fn line_without_an_end_is_an_error() {
    let mut channel = LineChannel::accept(EPOCH, seconds(0));
    let bytes = vec![b'x'; PART_BYTES_MAX];
    let frames = (1_u64..).map(|number| {
        let part = LinePart { number, is_last: false, bytes: bytes.clone() };
        LineFrame { epoch: EPOCH, acknowledged: 0, part: Some(part) }
    });
    let n_parts =
        frames.map(|frame| channel.handle_frame(frame, seconds(0))).take_while(Result::is_ok).count();
    assert_eq!(n_parts, LINE_BYTES_MAX / PART_BYTES_MAX);
    assert_eq!(channel.push_line(&"x".repeat(LINE_BYTES_MAX + 1)), Err(LineTooLong));
}

#[test]
fn licence_ends_without_a_message_or_a_server() {
    let mut licence = TaskLicence::new(seconds(30), seconds(0));
    assert_eq!(TaskLicence::heartbeat_interval(seconds(30)), seconds(5));
    licence.record_message(false);
    licence.record_message(true);
    licence.record_message(false);
    assert_eq!(licence.state(seconds(19)), LicenceState::Valid);
    assert_eq!(licence.state(seconds(20)), LicenceState::Expired);
    licence.confirm(seconds(10));
    assert_eq!((licence.state(seconds(29)), licence.expiry()), (LicenceState::Valid, seconds(30)));
    licence.record_message(false);
    assert_eq!(licence.state(seconds(29)), LicenceState::Revoked);
}
