use std::io::{Read as _, Write as _};

use rustix::{
    fs::{Mode, OFlags},
    pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt},
    termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize},
};

use super::*;
use crate::{
    screen::{InlineScreen, InputEvent, InputReader, KeyCode, KeyPress, ScreenFrame, TerminalTraits},
    text::StyledRow,
};

/// A terminal, and the end of it that a terminal emulator has.
fn open_terminal() -> (File, TtyIo) {
    let emulator = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&emulator).unwrap();
    unlockpt(&emulator).unwrap();
    let name = ptsname(&emulator, Vec::new()).unwrap();
    let terminal = rustix::fs::open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&emulator, size).unwrap();
    (File::from(emulator), TtyIo::from_file(File::from(terminal)).unwrap())
}

fn is_canonical(tty: &TtyIo) -> bool {
    tcgetattr(&*tty.file).unwrap().local_modes.contains(LocalModes::ICANON | LocalModes::ECHO)
}

/// Reads until the text arrives; then returns everything.
fn read_until(emulator: &mut File, end: &str) -> String {
    let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        let n_bytes = emulator.read(&mut buffer).unwrap();
        seen.extend_from_slice(&buffer[..n_bytes]);
        let text = String::from_utf8_lossy(&seen);
        if text.contains(end) {
            return text.into_owned();
        }
    }
}

#[test]
fn input_is_read_until_the_reader_is_dropped() {
    let (mut emulator, mut tty) = open_terminal();
    tty.set_raw(true).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut reader = InputReader::start(&tty).unwrap();
        emulator.write_all(b"a\x1b[200~one\ntwo\x1b[201~\x1b").unwrap();
        let key = |code| InputEvent::Key(KeyPress::plain(code));
        assert_eq!(reader.next_event().await.event, key(KeyCode::Char('a')));
        let paste = InputEvent::Paste { content: "one\ntwo".to_owned(), is_truncated: false };
        assert_eq!(reader.next_event().await.event, paste);
        assert_eq!(reader.next_event().await.event, key(KeyCode::Escape));
        drop(reader);
        emulator.write_all(b"for the editor\r").unwrap();
        let mut buffer = [0; 64];
        let n_bytes = (&*tty.file).read(&mut buffer).unwrap();
        assert_eq!(&buffer[..n_bytes], b"for the editor\r");
        let mut reader = InputReader::start(&tty).unwrap();
        emulator.write_all(b"b").unwrap();
        assert_eq!(reader.next_event().await.event, key(KeyCode::Char('b')));
        drop(emulator);
        assert_eq!(reader.next_event().await.event, InputEvent::Closed);
    });
}

#[test]
fn terminal_is_restored_once_from_anywhere() {
    let (mut emulator, tty) = open_terminal();
    let mut screen = InlineScreen::open(tty.clone(), TerminalTraits::default()).unwrap();
    assert_eq!(screen.size(), ScreenSize { columns: 80, rows: 24 });
    assert!(!is_canonical(&tty));
    let live = [StyledRow::from_text("> ask")];
    screen.draw(&ScreenFrame { history: &[], live: &live, caret: None }).unwrap();
    // As a panic hook does it.
    tty.restore(&screen.modes()).unwrap();
    assert!(is_canonical(&tty));
    let seen = read_until(&mut emulator, "\x1b[?2004l");
    assert!(seen.contains("\x1b[?2004h"), "{seen:?}");
    drop(screen);
    tty.restore(&ScreenModes::default()).unwrap();
    emulator.write_all(b"x\r").unwrap();
    let seen = read_until(&mut emulator, "x");
    assert_eq!(seen.matches("\x1b[?2004l").count(), 0, "{seen:?}");
}
