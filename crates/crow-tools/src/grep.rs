//! `grep`: lines of files by pattern.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
    time::Instant,
};

use crow_core::{Facets, Location, Outcome, ToolKind, ToolSpec, Touch, is_key};
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    Running, Tool, ToolCx, Workspace,
    hits::{Answer, Hits, Row},
    nofollow,
    text::cut_line,
    tool::{Refusal, answer, parse, text_of, title},
    walk::{Found, NamePattern, SEARCH_WITHIN, Visitor, Walked, brief, fitting, here, walk},
};

/// Who gets more lines than this has to ask more closely.
const LIMIT_DEFAULT: usize = 100;

/// About 50,000 tokens when every line is long; a model that wants more is wrong.
const LIMIT_MAX: usize = 1000;

/// Who wants to see more around a line reads the file.
const CONTEXT_MAX: usize = 20;

/// Enough of a line to see what it is.
const LINE_CHARS_MAX: usize = 300;

/// A file whose one line is longer than this is data; it is passed by.
const HEAP_BYTES_MAX: usize = 32 * 1024 * 1024;

/// What a pattern may grow to, for each thread; a search with a larger one is slow as well.
const MATCHER_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(crate) struct Grep {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct Wanted {
    pattern: String,
    #[serde(default = "here")]
    path: String,
    include: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    output: Output,
    #[serde(default)]
    context: usize,
    #[serde(default = "limit_default")]
    limit: usize,
}

/// What is shown of the files that match.
#[derive(Debug, Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
enum Output {
    #[default]
    Lines,
    Files,
    Count,
}

fn limit_default() -> usize {
    LIMIT_DEFAULT
}

impl Grep {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "grep".into(),
            description:
                "Finds lines by a regular expression (as ripgrep reads it) and shows them as `path:line: \
                          text`, in the order of the paths. Binary files and files that Git ignores are left out."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "minLength": 1, "description": "The regular expression"},
                    "path": {"type": "string", "description": "File or folder to search; the working folder if left out"},
                    "include": {"type": "string", "description": "Only files that match this glob, such as `*.rs` or `src/**/*.{ts,tsx}`"},
                    "ignore_case": {"type": "boolean", "default": false, "description": "Takes upper and lower case as the same"},
                    "output": {"type": "string", "enum": ["lines", "files", "count"], "default": "lines", "description": "Shows the lines, only the files that have some, or how many lines each file has"},
                    "context": {"type": "integer", "minimum": 0, "maximum": CONTEXT_MAX, "default": 0, "description": "Lines to show before and after each line, as `path-line- text`"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT, "description": "Most lines (or files) to show"}
                },
                "required": ["pattern"]
            }),
        };
        Self { spec }
    }
}

impl Tool for Grep {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn only_reads(&self) -> bool {
        true
    }

    fn facets(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> Facets {
        search(workspace, "Search", text_of(arguments, "pattern"), text_of(arguments, "path"))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let wanted: Wanted = parse(arguments)?;
            let (start, shown) = (cx.judged(&wanted.path)?, cx.workspace.shown(&wanted.path));
            let cut = cx.cut.child_token();
            let _stop = cut.clone().drop_guard();
            let text = cx.read_off_thread(move || find(&wanted, &start, &shown, &cut)).await?;
            Ok(Outcome::done(text))
        })
    }
}

/// Facets of a call that looks for something.
pub(crate) fn search(workspace: &Workspace, verb: &str, pattern: &str, path: &str) -> Facets {
    let shown = workspace.shown(path);
    let place = if shown == "." { String::new() } else { format!(" in {shown}") };
    Facets {
        title: title(&format!("{verb} `{pattern}`{place}")),
        kind: ToolKind::Search,
        locations: vec![Location { path: workspace.absolute(path).display().to_string(), line: None }],
        touch: Touch::Reads(vec![workspace.resolve(path).display().to_string()]),
    }
}

fn find(wanted: &Wanted, start: &Path, shown: &str, cut: &CancellationToken) -> Result<String, Refusal> {
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(wanted.ignore_case)
        .multi_line(true)
        .crlf(true)
        .size_limit(MATCHER_BYTES_MAX)
        .dfa_size_limit(MATCHER_BYTES_MAX)
        .build(fitting(&wanted.pattern)?)
        .map_err(|error| {
            Refusal(format!("the pattern is not a regular expression for lines: {}", brief(&error)))
        })?;
    let include = wanted.include.as_deref().map(NamePattern::new).transpose()?;
    let limit = wanted.limit.clamp(1, LIMIT_MAX);
    let hits = Hits::new(limit);
    let until = Instant::now() + SEARCH_WITHIN;
    let walked = walk(start, shown, cut, || Search {
        matcher: matcher.clone(),
        searcher: searcher(wanted),
        include: include.clone(),
        output: wanted.output,
        limit,
        keys: if holds_keys(start) { Keys::Searched } else { Keys::LeftOut },
        hits: &hits,
        cut,
        until,
    })?;
    let answer = hits.into_answer(|path| Found::new(path.to_owned(), start).shown(shown));
    Ok(explained(answer, wanted.output, limit, walked))
}

fn searcher(wanted: &Wanted) -> Searcher {
    let context = if wanted.output == Output::Lines { wanted.context.min(CONTEXT_MAX) } else { 0 };
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .line_number(wanted.output == Output::Lines)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP_BYTES_MAX))
        .build()
}

/// Adds what has to be known about an answer.
fn explained(answer: Answer, output: Output, limit: usize, walked: Walked) -> String {
    let Answer { mut text, n_rows, n_unread, n_keys } = answer;
    if n_rows == 0 {
        text += "no lines match\n";
    }
    if n_rows > limit {
        let rows = if output == Output::Lines { "lines" } else { "files" };
        text += &format!("(the first {limit} {rows}; there are more, use a narrower pattern or path)\n");
        // What was not searched any more is not known.
        return text;
    }
    if n_unread > 0 {
        text += &format!("({n_unread} files could not be searched)\n");
    }
    if n_keys > 0 {
        text += &format!(
            "({n_keys} files that hold keys by their names were left out; `path` with one of them asks the person)\n"
        );
    }
    text + &walked.notes()
}

/// The search of one thread.
struct Search<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    include: Option<NamePattern>,
    output: Output,
    limit: usize,
    keys: Keys,
    hits: &'a Hits,
    cut: &'a CancellationToken,
    until: Instant,
}

/// What becomes of files that hold keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// The call names them, so somebody was asked.
    Searched,
    /// They are below what the call names, and nobody was asked.
    LeftOut,
}

fn holds_keys(path: &Path) -> bool {
    is_key(&path.to_string_lossy())
}

impl Visitor for Search<'_> {
    fn enters(&mut self, folder: &Path) -> bool {
        self.hits.may_show(folder)
    }

    fn visit(&mut self, file: Found) {
        let is_included = self.include.as_ref().is_none_or(|include| include.is_match(&file));
        if !is_included || !self.hits.may_show(&file.absolute) {
            return;
        }
        if self.keys == Keys::LeftOut && holds_keys(&file.absolute) {
            return self.hits.add_key();
        }
        let mut rows = Rows { output: self.output, limit: self.limit, n_lines: 0, rows: Vec::new() };
        let searched = nofollow::open(&file.absolute).and_then(|opened| {
            if !opened.metadata()?.is_file() {
                return Err(io::ErrorKind::Unsupported.into());
            }
            let reader = Cuttable { file: opened, cut: self.cut, until: self.until };
            self.searcher.search_reader(&self.matcher, reader, &mut rows)
        });
        match searched {
            Ok(()) => self.hits.add(&file.absolute, rows.done()),
            Err(_) => self.hits.add_unread(),
        }
    }
}

/// A file that ends when the turn is cut or the search has taken too long.
struct Cuttable<'a> {
    file: File,
    cut: &'a CancellationToken,
    until: Instant,
}

impl Read for Cuttable<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let is_over = self.cut.is_cancelled() || Instant::now() >= self.until;
        if is_over { Err(io::Error::other("cut")) } else { self.file.read(buffer) }
    }
}

/// What one file comes to.
struct Rows {
    output: Output,
    limit: usize,
    n_lines: u64,
    rows: Vec<Row>,
}

impl Rows {
    fn done(mut self) -> Vec<Row> {
        match self.output {
            Output::Lines => {}
            Output::Files if self.n_lines > 0 => self.rows.push(Row::File),
            Output::Count if self.n_lines > 0 => self.rows.push(Row::Count(self.n_lines)),
            Output::Files | Output::Count => {}
        }
        self.rows
    }

    /// Takes one row more than the limit, to know that there are more.
    fn push(&mut self, row: Row) -> bool {
        self.rows.push(row);
        self.rows.len() <= self.limit
    }
}

fn line(bytes: &[u8]) -> String {
    cut_line(String::from_utf8_lossy(bytes).trim_end(), LINE_CHARS_MAX)
}

impl Sink for Rows {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        self.n_lines += 1;
        Ok(match self.output {
            Output::Lines => {
                self.push(Row::Match(found.line_number().unwrap_or_default(), line(found.bytes())))
            }
            Output::Files => false,
            Output::Count => true,
        })
    }

    fn context(&mut self, _: &Searcher, near: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.push(Row::Near(near.line_number().unwrap_or_default(), line(near.bytes()))))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.rows.push(Row::Gap);
        Ok(true)
    }
}
