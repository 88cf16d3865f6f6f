use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;
use crate::{
    screen::emulator::EmulatorIo,
    text::{PaletteColor, StyledSpan, TextStyle},
};

/// A screen on an emulator whose shell has printed some lines.
struct ScreenTest {
    emulator: EmulatorIo,
    screen: InlineScreen<EmulatorIo>,
    now: Instant,
    /// Everything that the terminal should have above the live region.
    expected: Vec<String>,
    live: Vec<StyledRow>,
    caret: CaretPosition,
    /// Whether a resize moved live rows out of the screen, where no program reaches them.
    has_stale_rows: bool,
}

impl ScreenTest {
    fn new(mut emulator: EmulatorIo, resizing: ResizeBehavior) -> Self {
        emulator.write_frame(b"shell 1\r\nshell 2\r\n").unwrap();
        let traits = TerminalTraits { resizing, ..TerminalTraits::default() };
        let screen = InlineScreen::open(emulator.clone(), traits).unwrap();
        let expected = vec!["shell 1".to_owned(), "shell 2".to_owned()];
        let (live, caret) = (Vec::new(), CaretPosition::default());
        Self { emulator, screen, now: Instant::now(), expected, live, caret, has_stale_rows: false }
    }

    fn draw(&mut self, history: &[StyledRow], live: &[StyledRow], caret: (u16, u16)) {
        self.caret = CaretPosition { row: caret.0, column: caret.1 };
        self.live = live.to_vec();
        let frame = ScreenFrame { history, live, caret: Some(self.caret) };
        assert!(self.screen.draw(&frame).unwrap());
        self.expected.extend(history.iter().map(StyledRow::text));
    }

    /// Resizes, and then again between the query for the position and the reply to it.
    fn resize(&mut self, sizes: &[(u16, u16)]) {
        let mut sizes = sizes.iter().map(|&(columns, rows)| ScreenSize { columns, rows });
        self.resize_emulator(sizes.next().unwrap());
        self.screen.on_resized(self.now);
        assert!(!self.screen.is_ready());
        while let Some(deadline) = self.screen.deadline() {
            self.now = self.now.max(deadline);
            self.screen.on_deadline(self.now).unwrap();
            let mut n_queries = self.emulator.take_position_queries();
            while n_queries > 0 {
                let (row, column) = self.emulator.cursor();
                if let Some(size) = sizes.next() {
                    self.resize_emulator(size);
                }
                let reply = TerminalReply::CursorPosition { row, column };
                self.screen.on_reply(&reply, self.now).unwrap();
                n_queries += self.emulator.take_position_queries();
                n_queries -= 1;
            }
        }
        let (live, caret) = (self.live.clone(), (self.caret.row, self.caret.column));
        self.draw(&[], &live, caret);
    }

    fn resize_emulator(&mut self, size: ScreenSize) {
        self.emulator.resize(size);
        let asked_size = std::mem::replace(&mut self.screen.size, size);
        self.has_stale_rows |= self.emulator.cursor().0 < self.screen.count_rows_above_cursor();
        self.screen.size = asked_size;
    }

    fn expected_rows(&self) -> Vec<String> {
        let n_live = self.live.len().min(self.screen.size().live_rows_max());
        let columns = usize::from(self.screen.size().columns);
        let live = self.live[self.live.len() - n_live..].iter();
        let live = live.map(|row| row.text().chars().take(columns).collect::<String>());
        self.expected.iter().cloned().chain(live).collect()
    }

    #[track_caller]
    fn check_rows(&self) {
        if !self.has_stale_rows {
            assert_eq!(self.emulator.rows(), self.expected_rows());
            return;
        }
        let text = self.emulator.rows().join("\n");
        let mut rest = text.as_str();
        for row in self.expected.iter().map(String::as_str).chain(["> ask"]) {
            assert_eq!(text.matches(row).count(), 1, "{row}: {text}");
            rest = rest.split_once(row).unwrap_or_else(|| panic!("{row} is above: {text}")).1;
        }
        assert_eq!(rest, "", "{text}");
    }
}

fn row(text: impl Into<String>) -> StyledRow {
    StyledRow::from_text(text)
}

fn code(text: impl Into<String>) -> StyledRow {
    StyledRow { is_code: true, ..row(text) }
}

fn size(columns: u16, rows: u16) -> ScreenSize {
    ScreenSize { columns, rows }
}

fn emulators(columns: u16, rows: u16) -> [(EmulatorIo, ResizeBehavior); 2] {
    let size = size(columns, rows);
    [
        (EmulatorIo::reflowing(size), ResizeBehavior::Reflows),
        (EmulatorIo::clipping(size), ResizeBehavior::Clips),
    ]
}

#[test]
fn history_scrolls_up_and_live_rows_stay() {
    for (emulator, resizing) in emulators(20, 6) {
        let mut test = ScreenTest::new(emulator, resizing);
        test.draw(&[], &[row("status"), row("> ask")], (1, 5));
        test.check_rows();
        for n in 0..9 {
            test.draw(&[row(format!("row {n}"))], &[row("live"), row("> ask"), row("status")], (1, 2));
            test.check_rows();
        }
        test.draw(&[], &[row("> ask")], (0, 2));
        test.check_rows();
        test.draw(&[row("last")], &[row("a"), row("b"), row("c"), row("d"), row("> ask")], (4, 0));
        test.check_rows();
    }
}

#[test]
fn code_is_wrapped_by_the_terminal() {
    for (emulator, resizing) in emulators(10, 5) {
        let mut test = ScreenTest::new(emulator, resizing);
        test.draw(&[], &[row("tail"), row("tail"), row("> ask")], (2, 0));
        let long = "let total = one + two;";
        test.draw(&[code(long), code("exactly 10"), row("prose")], &[row("> ask")], (0, 3));
        test.check_rows();
        test.draw(&[row("wider than the screen")], &[row("> ask")], (0, 3));
        test.check_rows();
    }
}

#[test]
fn live_rows_are_cut_at_the_edges() {
    for (emulator, resizing) in emulators(10, 4) {
        let mut test = ScreenTest::new(emulator, resizing);
        let live: Vec<StyledRow> = (0..6).map(|n| row(format!("live row {n} is long"))).collect();
        test.draw(&[], &live, (5, 30));
        test.check_rows();
        assert_eq!(test.emulator.cursor(), (3, 9));
    }
}

/// Compares the bytes of the second of two frames.
#[track_caller]
fn check_bytes(before: &[StyledRow], after: &[StyledRow], caret: (u16, u16), expected: &Expect) {
    let mut test = ScreenTest::new(EmulatorIo::reflowing(size(40, 10)), ResizeBehavior::Reflows);
    test.draw(&[], before, (0, 0));
    test.emulator.take_frames();
    test.draw(&[], after, caret);
    let bytes = test.emulator.take_frames().concat();
    expected.assert_eq(&String::from_utf8(bytes).unwrap().replace('\x1b', "^["));
}

#[test]
fn only_changed_cells_are_written() {
    let rows = [row("working 12 s"), row("> ask")];
    check_bytes(&rows, &rows, (0, 0), &expect![""]);
    check_bytes(&rows, &rows, (1, 5), &expect!["^[[?2026h^[[?7l^[[1B^[[6G^[[?7h^[[?2026l"]);
    check_bytes(
        &rows,
        &[row("working 13 s"), row("> ask")],
        (1, 5),
        &expect!["^[[?2026h^[[?7l^[[10G3^[[1B^[[6G^[[?7h^[[?2026l"],
    );
    check_bytes(
        &rows,
        &[row("done"), row("> ask!")],
        (1, 6),
        &expect!["^[[?2026h^[[?7l\r^[[2Kdone^[[1B^[[6G!^[[7G^[[?7h^[[?2026l"],
    );
}

#[test]
fn styles_and_links_end_with_their_span() {
    let link = crate::text::LinkTarget::parse("https://example.org/");
    let bold = TextStyle::default().bold().with_color(PaletteColor::RED);
    let spans = vec![
        StyledSpan { link, ..StyledSpan::plain("docs") },
        StyledSpan::styled("!", bold),
        StyledSpan::styled("?", TextStyle::default().with_color(PaletteColor(200))),
        StyledSpan::plain("."),
    ];
    check_bytes(
        &[row("")],
        &[StyledRow { spans, is_code: false }],
        (0, 0),
        &expect![
            "^[[?2026h^[[?7l\r^[]8;id=3e0e6ad14aa088d;https://example.org/^[\\docs^[]8;;^[\\^[[0;1;31m!^[[0;38;5;200m?^[[0m.\r^[[?7h^[[?2026l"
        ],
    );
    check_bytes(
        &[row("a👩\u{200d}💻b")],
        &[row("a👩\u{200d}💻c")],
        (0, 0),
        &expect!["^[[?2026h^[[?7l^[[4Gc\r^[[?7h^[[?2026l"],
    );
}

#[test]
fn resize_keeps_history_and_one_composer() {
    for (emulator, resizing) in emulators(80, 14) {
        let mut test = ScreenTest::new(emulator, resizing);
        let live = [row("─".repeat(14)), row("> ask"), row("status")];
        for n in 0..60 {
            test.draw(&[row(format!("history {n:02}"))], &live, (1, 5));
        }
        for (columns, rows) in [(80, 14), (40, 14), (40, 8), (100, 8), (80, 14), (30, 14), (80, 14)] {
            test.resize(&[(columns, rows)]);
            test.check_rows();
        }
        test.resize(&[(50, 10), (30, 12), (60, 9)]);
        test.check_rows();
    }
}

#[test]
fn frame_before_the_event_of_a_resize_is_not_drawn() {
    let mut test = ScreenTest::new(EmulatorIo::reflowing(size(40, 8)), ResizeBehavior::Reflows);
    let live = [row("─".repeat(38)), row("> ask")];
    test.draw(&[row("one"), row("two")], &live, (1, 5));
    test.emulator.resize(size(20, 8));
    let frame = ScreenFrame { history: &[row("three")], live: &live, caret: None };
    assert!(!test.screen.draw(&frame).unwrap());
    assert!(test.screen.deadline().is_some());
    test.now = Instant::now();
    test.resize(&[(20, 8)]);
    test.check_rows();
}

#[test]
fn live_rows_that_the_terminal_wraps_are_replaced() {
    let mut test = ScreenTest::new(EmulatorIo::reflowing(size(60, 12)), ResizeBehavior::Reflows);
    let live =
        [row("a long row of the answer that wraps when it is narrow"), row("─".repeat(58)), row("> ask")];
    for n in 0..20 {
        test.draw(&[row(format!("history {n:02} with enough text to be wrapped"))], &live, (2, 5));
    }
    for columns in [20, 33, 60, 24] {
        test.resize(&[(columns, 12)]);
        test.check_rows();
    }
    assert!(!test.has_stale_rows);
}

#[test]
fn console_that_repaints_is_drawn_below() {
    let mut test = ScreenTest::new(EmulatorIo::reflowing(size(40, 8)), ResizeBehavior::Repaints);
    test.draw(&[row("history")], &[row("> ask")], (0, 5));
    test.resize(&[(30, 8)]);
    let rows = test.emulator.rows();
    assert_eq!(rows[2], "history");
    assert_eq!(rows.last().unwrap(), "> ask");
    assert!(rows.iter().filter(|row| *row == "> ask").count() <= 2, "{rows:?}");
}

#[test]
fn unknown_terminal_loses_no_history() {
    let size = size(60, 10);
    for emulator in [EmulatorIo::reflowing(size), EmulatorIo::clipping(size)] {
        let mut test = ScreenTest::new(emulator, ResizeBehavior::Unknown);
        let live = [row("x".repeat(58)), row("> ask")];
        for n in 0..20 {
            test.draw(&[row(format!("history {n:02}"))], &live, (1, 5));
        }
        test.resize(&[(20, 10)]);
        let mut rows = test.emulator.rows();
        rows.dedup_by(|one, other| one == other);
        for n in 0..20 {
            assert!(rows.contains(&format!("history {n:02}")), "{n}: {rows:#?}");
        }
        assert_eq!(rows.iter().filter(|row| *row == "> ask").count(), 1, "{rows:#?}");
    }
}

#[test]
fn rebuild_writes_history_once() {
    for (emulator, resizing) in emulators(20, 6) {
        let mut test = ScreenTest::new(emulator, resizing);
        test.draw(&[row("one"), row("two"), row("three")], &[row("> ask")], (0, 2));
        test.screen.rebuild(&[row("one"), row("two, again")]).unwrap();
        test.expected = vec!["one".to_owned(), "two, again".to_owned()];
        test.draw(&[], &[row("> ask")], (0, 2));
        if resizing == ResizeBehavior::Reflows {
            test.check_rows();
        }
    }
}

#[test]
fn pager_leaves_the_inline_screen_as_it_was() {
    let mut test = ScreenTest::new(EmulatorIo::reflowing(size(20, 6)), ResizeBehavior::Reflows);
    test.draw(&[row("one")], &[row("> ask"), row("status")], (0, 2));
    test.screen.enter_fullscreen().unwrap();
    let frame = ScreenFrame { history: &[], live: &[], caret: None };
    assert!(!test.screen.draw(&frame).unwrap());
    test.screen.draw_fullscreen(&[row("page 1"), row("more")], None).unwrap();
    assert_eq!(test.emulator.rows(), ["page 1", "more"]);
    test.screen.draw_fullscreen(&[row("page 2"), row("more")], None).unwrap();
    assert_eq!(test.emulator.rows(), ["page 2", "more"]);
    test.screen.leave_fullscreen(Some(test.now)).unwrap();
    test.draw(&[row("two")], &[row("> ask"), row("status")], (0, 2));
    test.check_rows();
}

#[test]
fn page_for_another_size_is_not_drawn() {
    let mut test = ScreenTest::new(EmulatorIo::reflowing(size(20, 6)), ResizeBehavior::Reflows);
    test.screen.enter_fullscreen().unwrap();
    assert!(test.screen.draw_fullscreen(&[row("page 1"), row("end")], None).unwrap());
    test.emulator.resize(size(20, 4));
    assert!(!test.screen.draw_fullscreen(&[row("page 2"), row("end")], None).unwrap());
    test.screen.on_deadline(test.screen.deadline().unwrap()).unwrap();
    assert_eq!(test.screen.size(), size(20, 4));
    assert!(test.screen.draw_fullscreen(&[row("page 3"), row("end")], None).unwrap());
    assert_eq!(test.emulator.rows(), ["page 3", "end"]);
}

#[test]
fn editor_waits_for_no_resize() {
    let mut test = ScreenTest::new(EmulatorIo::reflowing(size(20, 6)), ResizeBehavior::Reflows);
    test.draw(&[row("one")], &[row("> ask"), row("status")], (0, 2));
    test.screen.on_resized(test.now);
    test.screen.suspend().unwrap();
    assert_eq!(test.screen.deadline(), None);
}

#[test]
fn editor_gets_a_screen_without_live_rows() {
    let mut test = ScreenTest::new(EmulatorIo::reflowing(size(20, 6)), ResizeBehavior::Reflows);
    test.draw(&[row("one")], &[row("> ask"), row("status")], (0, 2));
    test.screen.suspend().unwrap();
    assert_eq!(test.emulator.rows(), ["shell 1", "shell 2", "one"]);
    assert!(!test.screen.is_ready());
    test.emulator.write_frame(b"editor\r\n").unwrap();
    test.expected.push("editor".to_owned());
    test.screen.resume().unwrap();
    test.draw(&[row("two")], &[row("> ask")], (0, 2));
    test.check_rows();
    test.screen.close(&[row("bye")]).unwrap();
    assert_eq!(test.emulator.rows().last().unwrap(), "bye");
}

#[test]
fn keyboard_protocol_is_pushed_when_the_terminal_has_it() {
    let mut test = ScreenTest::new(EmulatorIo::reflowing(size(20, 6)), ResizeBehavior::Unknown);
    test.emulator.take_frames();
    test.screen.on_reply(&TerminalReply::KittyKeyboard, test.now).unwrap();
    test.screen.on_reply(&TerminalReply::KittyKeyboard, test.now).unwrap();
    test.screen.on_reply(&TerminalReply::Version("tmux 3.5".to_owned()), test.now).unwrap();
    assert_eq!(test.emulator.take_frames(), [b"\x1b[>1u"]);
    let modes = test.screen.modes();
    drop(test.screen);
    let restored = test.emulator.take_frames().concat();
    assert!(restored.ends_with(b"\x1b[<u\r\n"), "{restored:?}");
    assert_eq!(modes.take_restore_sequence(), "");
}

/// A step of a random session.
#[derive(Debug, Clone)]
enum RandomStep {
    Draw { n_history: usize, live_widths: Vec<usize>, is_code: bool },
    Resize(Vec<(u16, u16)>),
}

fn random_step(columns: std::ops::Range<u16>, width_max: usize) -> impl Strategy<Value = RandomStep> {
    let draw = (0_usize..4, proptest::collection::vec(1..width_max, 1..12), any::<bool>())
        .prop_map(|(n_history, live_widths, is_code)| RandomStep::Draw { n_history, live_widths, is_code });
    let resize = proptest::collection::vec((columns, 4_u16..16), 1..4).prop_map(RandomStep::Resize);
    prop_oneof![4 => draw, 1 => resize]
}

/// Runs a session and checks the terminal after each step.
fn run_session(mut test: ScreenTest, steps: &[RandomStep], history_width: usize) {
    let mut n_rows = 0;
    for step in steps {
        match step {
            RandomStep::Draw { n_history, live_widths, is_code } => {
                let history: Vec<StyledRow> = (n_rows..n_rows + n_history)
                    .map(|n| StyledRow {
                        is_code: *is_code,
                        ..row(format!("{n:03}{}", "h".repeat(history_width)))
                    })
                    .collect();
                n_rows += n_history;
                let mut live: Vec<StyledRow> =
                    live_widths.iter().map(|&width| row(format!("L{}", "l".repeat(width)))).collect();
                live.push(row("> ask"));
                let caret = (u16::try_from(live.len() - 1).unwrap(), 5);
                test.draw(&history, &live, caret);
            }
            RandomStep::Resize(sizes) => test.resize(sizes),
        }
        test.check_rows();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn reflowing_terminal_has_each_row_once(
        steps in proptest::collection::vec(random_step(8..60, 50), 1..25),
    ) {
        let test = ScreenTest::new(EmulatorIo::reflowing(size(30, 10)), ResizeBehavior::Reflows);
        run_session(test, &steps, 20);
    }

    #[test]
    fn clipping_terminal_has_each_row_once(
        steps in proptest::collection::vec(random_step(16..60, 50), 1..25),
    ) {
        let test = ScreenTest::new(EmulatorIo::clipping(size(30, 10)), ResizeBehavior::Clips);
        run_session(test, &steps, 6);
    }
}
