use super::*;

const SMALL: ScreenSize = ScreenSize { columns: 40, rows: 10 };
const LARGE: ScreenSize = ScreenSize { columns: 80, rows: 24 };

fn after(start: Instant, millis: u64) -> Instant {
    start + Duration::from_millis(millis)
}

/// Returns a process that has asked for the position at 60 ms.
fn asked(start: Instant) -> ResizeProcess {
    let mut process = ResizeProcess::new();
    process.on_resized(start);
    assert_eq!(process.on_deadline(after(start, 60), SMALL, true), ResizeAction::AskPosition);
    process
}

#[test]
fn position_is_asked_when_the_size_is_quiet() {
    let start = Instant::now();
    let mut process = ResizeProcess::new();
    assert_eq!(process.take_origin(), Some(FrameOrigin::Parked));
    process.on_resized(start);
    process.on_resized(after(start, 50));
    assert!(process.take_origin().is_none());
    assert_eq!(process.on_deadline(after(start, 60), SMALL, true), ResizeAction::None);
    assert_eq!(process.on_deadline(after(start, 110), SMALL, true), ResizeAction::AskPosition);
    assert_eq!(process.on_position(7, SMALL, after(start, 111)), ResizeAction::None);
    assert_eq!(process.take_origin(), Some(FrameOrigin::Reported { row: 7 }));
    assert_eq!(process.take_origin(), Some(FrameOrigin::Parked));
}

#[test]
fn dragging_does_not_wait_for_ever() {
    let start = Instant::now();
    let mut process = ResizeProcess::new();
    for step in 0..=6 {
        process.on_resized(after(start, step * 50));
    }
    assert_eq!(process.on_deadline(after(start, 300), SMALL, true), ResizeAction::AskPosition);
}

#[test]
fn stale_reply_is_dropped() {
    let start = Instant::now();
    let mut process = asked(start);
    // The window changes again between query and reply.
    process.on_resized(after(start, 61));
    assert_eq!(process.on_deadline(after(start, 121), LARGE, true), ResizeAction::AskPosition);
    assert_eq!(process.on_position(3, LARGE, after(start, 122)), ResizeAction::None);
    assert!(!process.is_over(), "the reply is to the first query");
    process.on_position(5, LARGE, after(start, 123));
    assert_eq!(process.take_origin(), Some(FrameOrigin::Reported { row: 5 }));
}

#[test]
fn reply_for_another_size_is_asked_again() {
    let start = Instant::now();
    let mut process = asked(start);
    assert_eq!(process.on_position(3, LARGE, after(start, 62)), ResizeAction::AskPosition);
    process.on_position(4, LARGE, after(start, 63));
    assert_eq!(process.take_origin(), Some(FrameOrigin::Reported { row: 4 }));
}

#[test]
fn silent_terminal_is_drawn_below_and_not_asked_for_ever() {
    let mut start = Instant::now();
    let mut process = ResizeProcess::new();
    for _ in 0..2 {
        process.on_resized(start);
        assert_eq!(process.on_deadline(after(start, 60), SMALL, true), ResizeAction::AskPosition);
        assert_eq!(process.on_deadline(after(start, 560), SMALL, true), ResizeAction::None);
        assert_eq!(process.take_origin(), Some(FrameOrigin::Below));
        start = after(start, 1000);
    }
    process.on_resized(start);
    assert_eq!(process.on_deadline(after(start, 60), SMALL, true), ResizeAction::None);
    assert_eq!(process.take_origin(), Some(FrameOrigin::Below));
}

#[test]
fn console_that_repaints_is_not_asked() {
    let start = Instant::now();
    let mut process = ResizeProcess::new();
    process.on_resized(start);
    assert_eq!(process.on_deadline(after(start, 60), SMALL, false), ResizeAction::None);
    assert_eq!(process.take_origin(), Some(FrameOrigin::Below));
}

#[test]
fn lost_reply_is_forgotten() {
    let start = Instant::now();
    let mut process = asked(start);
    process.on_deadline(after(start, 600), SMALL, true);
    assert_eq!(process.take_origin(), Some(FrameOrigin::Below));
    process.on_resized(after(start, 9000));
    assert_eq!(process.on_deadline(after(start, 9060), SMALL, true), ResizeAction::AskPosition);
    process.on_position(6, SMALL, after(start, 9061));
    assert_eq!(process.take_origin(), Some(FrameOrigin::Reported { row: 6 }));
}
