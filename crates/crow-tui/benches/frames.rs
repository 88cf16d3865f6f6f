//! Measures frames of a streamed answer, and rendering: `cargo bench -p crow-tui`.
//!
//! A thousand updates a second are drawn at sixty frames a second, as the program does it; the terminal is a counter.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints, and fails by panicking")]

use std::{
    cell::Cell,
    hint::black_box,
    io,
    rc::Rc,
    time::{Duration, Instant},
};

use crow_tui::{
    screen::{CaretPosition, InlineScreen, ScreenFrame, ScreenSize, TerminalIo, TerminalTraits},
    text::{ColorTheme, MarkdownStream, StyledRow, ansi_rows, highlight_code, render_diff, render_markdown},
};

const UPDATES: usize = 20_000;
const UPDATES_PER_FRAME: usize = 16;
const THEME: ColorTheme = ColorTheme { has_color: true, is_light: false };
const SAMPLE: &str = include_str!("../src/text/markdown/sample.md");

/// A terminal that counts.
struct CountingIo {
    n_bytes: Rc<Cell<usize>>,
}

impl TerminalIo for CountingIo {
    fn write_frame(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.n_bytes.set(self.n_bytes.get() + bytes.len());
        Ok(())
    }

    fn size(&self) -> io::Result<ScreenSize> {
        Ok(ScreenSize { columns: 120, rows: 40 })
    }

    fn set_raw(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }
}

fn main() {
    // `cargo test --benches` only checks that this builds and starts.
    if std::env::args().any(|word| word == "--test") {
        return;
    }
    measure_stream();
    measure_spinner();
    measure_text();
}

fn live_rows(open: &[StyledRow], n_frame: usize) -> Vec<StyledRow> {
    let mut live = open[open.len().saturating_sub(20)..].to_vec();
    live.push(StyledRow::from_text(format!("working {} s", n_frame / 60)));
    live.push(StyledRow::from_text("> next question"));
    live.push(StyledRow::from_text("model · mode · 12 % of the context"));
    live
}

fn measure_stream() {
    let n_bytes = Rc::new(Cell::new(0));
    let io = CountingIo { n_bytes: Rc::clone(&n_bytes) };
    let mut screen = InlineScreen::open(io, TerminalTraits::default()).unwrap();
    let text: Vec<char> = SAMPLE.chars().collect();
    let mut stream = MarkdownStream::new(120, THEME);
    let (mut times, mut sizes) = (Vec::new(), Vec::new());
    let mut at = 0;
    for n_frame in 0..UPDATES / UPDATES_PER_FRAME {
        let start = Instant::now();
        for _ in 0..UPDATES_PER_FRAME {
            // A token has about four letters.
            let token: String = (0..4).map(|offset| text[(at + offset) % text.len()]).collect();
            at += 4;
            stream.push(&token);
        }
        let history = stream.take_settled();
        let live = live_rows(&stream.open_rows(), n_frame);
        let row = u16::try_from(live.len() - 2).unwrap();
        let caret = Some(CaretPosition { row, column: 15 });
        let before = n_bytes.get();
        screen.draw(&ScreenFrame { history: &history, live: &live, caret }).unwrap();
        times.push(start.elapsed());
        sizes.push(n_bytes.get() - before);
    }
    times.sort_unstable();
    sizes.sort_unstable();
    let at = |percent: usize| (times.len() - 1) * percent / 100;
    let total: usize = sizes.iter().sum();
    println!(
        "stream: {} frames of {UPDATES_PER_FRAME} updates; p50 {:?}, p99 {:?}, max {:?}",
        times.len(),
        times[at(50)],
        times[at(99)],
        times[at(100)],
    );
    println!(
        "stream: bytes per frame: mean {}, p50 {}, p99 {}",
        total / sizes.len(),
        sizes[at(50)],
        sizes[at(99)]
    );
}

fn measure_spinner() {
    let n_bytes = Rc::new(Cell::new(0));
    let io = CountingIo { n_bytes: Rc::clone(&n_bytes) };
    let mut screen = InlineScreen::open(io, TerminalTraits::default()).unwrap();
    let mut live = live_rows(&[], 0);
    let caret = Some(CaretPosition { row: 1, column: 15 });
    screen.draw(&ScreenFrame { history: &[], live: &live, caret }).unwrap();
    let (before, start, n_frames) = (n_bytes.get(), Instant::now(), 10_000);
    for n_frame in 0..n_frames {
        live[0] = StyledRow::from_text(if n_frame % 2 == 0 { "⠋ working" } else { "⠙ working" });
        screen.draw(&ScreenFrame { history: &[], live: &live, caret }).unwrap();
    }
    println!(
        "spinner: {:?} and {} bytes per frame",
        start.elapsed() / n_frames,
        (n_bytes.get() - before) / usize::try_from(n_frames).unwrap()
    );
}

fn measure_text() {
    let markdown = SAMPLE.repeat(100);
    report("markdown", markdown.len(), || render_markdown(&markdown, 100, &THEME).len());
    let code = include_str!("../src/screen/inline.rs").repeat(20);
    report("highlight", code.len(), || highlight_code(&code, "rs", &THEME).len());
    let new = code.replace("parked", "placed");
    report("diff", code.len(), || render_diff("inline.rs", Some(&code), &new, 100, &THEME).len());
    let output = "\x1b[32mok\x1b[0m test \x1b[1mname\x1b[0m ... passed in 12 ms\n".repeat(5000);
    report("ansi", output.len(), || ansi_rows(&output, &THEME).len());
}

fn report(name: &str, n_bytes: usize, run: impl Fn() -> usize) {
    let start = Instant::now();
    let n_rows = black_box(run());
    let elapsed = start.elapsed().max(Duration::from_nanos(1));
    let rate = n_bytes as f64 / elapsed.as_secs_f64() / 1e6;
    println!("{name}: {n_bytes} bytes, {n_rows} rows in {elapsed:?}, {rate:.1} MB/s");
}
