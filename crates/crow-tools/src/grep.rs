//! `grep`: lines of files by pattern.

use std::{fmt::Write as _, path::Path};

use crow_core::{Facets, Location, Outcome, ToolKind, ToolSpec, Touch};
use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, sinks::Lossy};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    Running, Tool, ToolCx, Workspace,
    text::cut_line,
    tool::{Refusal, answer, off_thread, parse, text_of, title},
    walk::{Found, NamePattern, Walk, here, walk},
};

/// Who gets more lines than this has to ask more closely.
const LIMIT_DEFAULT: usize = 100;

/// About 50,000 tokens when every line is long; a model that wants more is wrong.
const LIMIT_MAX: usize = 1000;

/// Enough of a line to see what it is.
const LINE_CHARS_MAX: usize = 300;

/// A file whose one line is longer than this is data; it is passed by.
const HEAP_BYTES_MAX: usize = 32 * 1024 * 1024;

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
    #[serde(default = "limit_default")]
    limit: usize,
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
                          text`. Binary files and files that Git ignores are left out."
                    .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "minLength": 1, "description": "The regular expression"},
                    "path": {"type": "string", "description": "File or folder to search; the working folder if left out"},
                    "include": {"type": "string", "description": "Only files that match this glob, such as `*.rs` or `src/**/*.{ts,tsx}`"},
                    "ignore_case": {"type": "boolean", "default": false, "description": "Takes upper and lower case as the same"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT_DEFAULT, "description": "Most lines to show"}
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

    fn facets(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> Facets {
        search(workspace, "Search", text_of(arguments, "pattern"), text_of(arguments, "path"))
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        answer(async move {
            let wanted: Wanted = parse(arguments)?;
            let (start, shown) = (cx.judged(&wanted.path)?, cx.workspace.shown(&wanted.path));
            let cut = cx.cut.child_token();
            let _stop = cut.clone().drop_guard();
            let text = off_thread(move || Search::new(&wanted)?.run(&start, &shown, &cut)).await?;
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

struct Search {
    matcher: RegexMatcher,
    include: Option<NamePattern>,
    searcher: Searcher,
    limit: usize,
    n_found: usize,
    n_unread: usize,
    text: String,
}

impl Search {
    fn new(wanted: &Wanted) -> Result<Self, Refusal> {
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(wanted.ignore_case)
            .crlf(true)
            .build(&wanted.pattern)
            .map_err(|error| {
                Refusal(format!("the pattern is not a regular expression for lines: {error}"))
            })?;
        let searcher = SearcherBuilder::new()
            .line_terminator(LineTerminator::crlf())
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP_BYTES_MAX))
            .build();
        Ok(Self {
            matcher,
            include: wanted.include.as_deref().map(NamePattern::new).transpose()?,
            searcher,
            limit: wanted.limit.clamp(1, LIMIT_MAX),
            n_found: 0,
            n_unread: 0,
            text: String::new(),
        })
    }

    fn run(mut self, start: &Path, shown: &str, cut: &CancellationToken) -> Result<String, Refusal> {
        walk(start, shown, cut, |file| self.visit(&file, shown, cut))?;
        if self.n_found == 0 {
            self.text += "no lines match\n";
        }
        if self.n_unread > 0 {
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "({} files could not be searched)", self.n_unread);
        }
        if self.n_found > self.limit {
            let limit = self.limit;
            // Writing to a string cannot fail.
            let _ = writeln!(
                self.text,
                "(the first {limit} lines; there are more, use a narrower pattern or path)"
            );
        }
        Ok(self.text)
    }

    /// Searches one file, and one line further than the limit to know whether there is more.
    fn visit(&mut self, file: &Found, start: &str, cut: &CancellationToken) -> Walk {
        if self.include.as_ref().is_some_and(|include| !include.is_match(file)) {
            return Walk::On;
        }
        let shown = file.shown(start);
        let Self { matcher, searcher, limit, n_found, n_unread, text, .. } = self;
        let sink = Lossy(|number, line| {
            *n_found += 1;
            if *n_found <= *limit {
                let line = cut_line(line.trim_end(), LINE_CHARS_MAX);
                let _ = writeln!(text, "{shown}:{number}: {line}");
            }
            Ok(*n_found <= *limit && !cut.is_cancelled())
        });
        if searcher.search_path(&*matcher, &file.absolute, sink).is_err() {
            *n_unread += 1;
        }
        if self.n_found > self.limit { Walk::Stop } else { Walk::On }
    }
}
