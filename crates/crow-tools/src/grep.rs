//! `grep`: finds lines by a pattern.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    time::Instant,
};

use crow_core::{FileLocation, ToolAccess, ToolCallInfo, ToolKind, ToolResult, ToolSpec, is_key_path};
use crow_files::nofollow;
use grep_matcher::{LineTerminator, Matcher};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    Tool, ToolCx, ToolFuture, Workspace,
    search_hits::{MatchRow, SearchHits, SearchSummary, list_names},
    text_encoding::{SNIFFED_BYTES, truncate_line},
    title::to_title,
    tool::{into_tool_future, parse_arguments, text_argument},
    tool_error::ToolError,
    walk::{
        FileVisitor, FoundFile, PathPattern, SEARCH_TIMEOUT, WalkSummary, check_pattern_length, default_path,
        shorten_error, split_wildcards, walk_files,
    },
};

/// More lines than this call for a narrower pattern.
const LIMIT_DEFAULT: usize = 100;

/// About 50,000 tokens if every line is long; more is never useful.
const LIMIT_MAX: usize = 1000;

/// For more context the model reads the file.
const CONTEXT_MAX: usize = 20;

/// Enough to understand a line.
const LINE_CHARS_MAX: usize = 300;

/// A file with a longer line is data and is skipped.
const HEAP_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Maximum size of a compiled pattern per thread; larger ones are slow as well.
const MATCHER_BYTES_MAX: usize = 16 * 1024 * 1024;

pub(crate) struct GrepTool {
    spec: ToolSpec,
}

#[derive(Deserialize)]
struct GrepArgs {
    pattern: String,
    #[serde(default = "default_path")]
    path: String,
    include: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    output: GrepOutput,
    #[serde(default)]
    context: usize,
    #[serde(default = "limit_default")]
    limit: usize,
}

/// The form of the results.
#[derive(Debug, Deserialize, Clone, Copy, PartialEq, Eq, Default)]
#[serde(rename_all = "lowercase")]
enum GrepOutput {
    #[default]
    Lines,
    Files,
    Count,
}

fn limit_default() -> usize {
    LIMIT_DEFAULT
}

impl GrepTool {
    pub(crate) fn new() -> Self {
        let spec = ToolSpec {
            name: "grep".into(),
            description: "Finds lines by a regular expression (as ripgrep reads it) and shows them as `path:line: text`. Use it \
                          rather than `grep` in `terminal`; `glob` finds files by name. Binary files and files that Git \
                          ignores are left out. Escape brackets that are meant literally: `main\\(`."
                .into(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "pattern": {"type": "string", "minLength": 1, "description": "The regular expression"},
                    "path": {"type": "string", "description": "File or folder to search, or a glob such as `src/*.rs`; the working folder if left out"},
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

impl Tool for GrepTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call_info(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> ToolCallInfo {
        search_call_info(
            workspace,
            "Search",
            text_argument(arguments, "pattern"),
            split_wildcards(text_argument(arguments, "path")).0,
        )
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> ToolFuture<'a> {
        into_tool_future(async move {
            let args: GrepArgs = parse_arguments(arguments)?;
            let path = split_wildcards(&args.path).0;
            let (start, display_path) = (cx.approved_path(path)?, cx.workspace.display_path(path));
            let cancel = cx.cancel.child_token();
            let _stop = cancel.clone().drop_guard();
            let scope = SearchScope { start, display_path, cwd: cx.workspace.roots()[0].clone() };
            let text = cx.read_blocking(move || search_files(&args, &scope, &cancel)).await?;
            Ok(ToolResult::success(text))
        })
    }
}

/// Call info of a search.
pub(crate) fn search_call_info(workspace: &Workspace, verb: &str, pattern: &str, path: &str) -> ToolCallInfo {
    let display_path = workspace.display_path(path);
    let suffix = if display_path == "." { String::new() } else { format!(" in {display_path}") };
    ToolCallInfo {
        title: to_title(&format!("{verb} `{pattern}`{suffix}")),
        kind: ToolKind::Search,
        locations: vec![FileLocation { path: workspace.to_absolute(path).display().to_string(), line: None }],
        access: ToolAccess::Reads(vec![workspace.resolve_path(path).display().to_string()]),
    }
}

/// The place of a search.
struct SearchScope {
    /// The resolved path of the directory or file.
    start: PathBuf,
    display_path: String,
    /// The working folder, to which the files to include may be relative.
    cwd: PathBuf,
}

fn search_files(
    args: &GrepArgs,
    scope: &SearchScope,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    let SearchScope { start, display_path, cwd } = scope;
    let matcher = RegexMatcherBuilder::new()
        .case_insensitive(args.ignore_case)
        .multi_line(true)
        .crlf(true)
        .size_limit(MATCHER_BYTES_MAX)
        .dfa_size_limit(MATCHER_BYTES_MAX)
        .build(check_pattern_length(&args.pattern)?)
        .map_err(|error| {
            ToolError(format!("the pattern is not a regular expression for lines: {}", shorten_error(&error)))
        })?;
    let include = args.include.as_deref().map(PathPattern::new).transpose()?;
    let path_pattern = split_wildcards(&args.path).1.map(PathPattern::new).transpose()?;
    let limit = args.limit.clamp(1, LIMIT_MAX);
    let hits = SearchHits::new(limit);
    let deadline = Instant::now() + SEARCH_TIMEOUT;
    let walk_summary = walk_files(start, display_path, cancel, || GrepVisitor {
        matcher: matcher.clone(),
        searcher: build_searcher(args),
        include: include.clone(),
        path_pattern: path_pattern.clone(),
        cwd,
        output: args.output,
        limit,
        includes_key_files: is_key_file(start),
        hits: &hits,
        cancel,
        deadline,
    })?;
    let summary = hits.into_summary(|path| FoundFile::new(path.to_owned(), start).display_path(display_path));
    Ok(render_summary(summary, args.output, limit, walk_summary))
}

fn build_searcher(args: &GrepArgs) -> Searcher {
    let context = if args.output == GrepOutput::Lines { args.context.min(CONTEXT_MAX) } else { 0 };
    SearcherBuilder::new()
        .line_terminator(LineTerminator::crlf())
        .line_number(args.output == GrepOutput::Lines)
        .before_context(context)
        .after_context(context)
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(HEAP_BYTES_MAX))
        .build()
}

/// Appends notes about limits and skipped files.
fn render_summary(
    summary: SearchSummary,
    output: GrepOutput,
    limit: usize,
    walk_summary: WalkSummary,
) -> String {
    let SearchSummary { mut text, n_rows, names, n_names, partial, n_partial, n_unread, n_key_files } =
        summary;
    if n_rows == 0 {
        text += "no lines match\n";
        if n_names > 0 {
            let files = match n_names {
                1 => "the name of 1 file matches".to_owned(),
                n => format!("the names of {n} files match"),
            };
            text += &format!("(but {files}, which `glob` finds: {})\n", list_names(&names, n_names));
        }
    }
    if n_rows > limit {
        let rows = if output == GrepOutput::Lines { "lines" } else { "files" };
        text += &format!("(the first {limit} {rows}; there are more, use a narrower pattern or path)\n");
        // The notes below only hold for a complete search.
        return text;
    }
    let partial = list_names(&partial, n_partial);
    match n_partial {
        0 => {}
        1 => text += &format!("({partial} has a zero byte and was searched only in part)\n"),
        n => text += &format!("({n} files have a zero byte and were searched only in part: {partial})\n"),
    }
    match n_unread {
        0 => {}
        1 => text += "(1 file could not be searched)\n",
        n => text += &format!("({n} files could not be searched)\n"),
    }
    match n_key_files {
        0 => {}
        1 => {
            text += "(1 file that contains keys, by its name, was left out; a `path` to it asks the user)\n";
        }
        n => {
            text += &format!(
                "({n} files that contain keys, by their names, were left out; a `path` to one of them asks the user)\n"
            );
        }
    }
    text + &walk_summary.render_notes()
}

/// The state of one search thread.
struct GrepVisitor<'a> {
    matcher: RegexMatcher,
    searcher: Searcher,
    /// Pattern that a file's path must match, relative to the start or to `cwd`.
    include: Option<PathPattern>,
    /// Pattern in the path of the call, relative to the start.
    path_pattern: Option<PathPattern>,
    cwd: &'a Path,
    output: GrepOutput,
    limit: usize,
    /// Whether files that contain keys are searched: only if the call names one, so that the user was asked.
    includes_key_files: bool,
    hits: &'a SearchHits,
    cancel: &'a CancellationToken,
    deadline: Instant,
}

fn is_key_file(path: &Path) -> bool {
    is_key_path(&path.to_string_lossy())
}

impl GrepVisitor<'_> {
    fn is_included(&self, file: &FoundFile) -> bool {
        let is_match = |include: &PathPattern| {
            include.is_match(file) || include.is_match(&FoundFile::new(file.absolute.clone(), self.cwd))
        };
        self.include.as_ref().is_none_or(is_match)
            && self.path_pattern.as_ref().is_none_or(|pattern| pattern.is_match(file))
    }

    fn is_name_match(&self, name: &OsStr) -> bool {
        self.matcher.is_match(name.as_encoded_bytes()).unwrap_or(false)
    }
}

impl FileVisitor for GrepVisitor<'_> {
    fn should_enter(&mut self, dir: &Path) -> bool {
        self.hits.may_show(dir)
    }

    fn visit_file(&mut self, file: FoundFile) {
        if !self.is_included(&file) || !self.hits.may_show(&file.absolute) {
            return;
        }
        // The name of the only file that is searched says nothing.
        if file.relative.file_name().is_some_and(|name| self.is_name_match(name)) {
            self.hits.add_name(&file.absolute);
        }
        if !self.includes_key_files && is_key_file(&file.absolute) {
            return self.hits.add_skipped_key();
        }
        let mut rows = RowCollector {
            output: self.output,
            limit: self.limit,
            n_lines: 0,
            is_partial: false,
            rows: Vec::new(),
            n_counted: 0,
        };
        let searched = nofollow::open_file(&file.absolute).and_then(|opened| {
            if !opened.metadata()?.is_file() {
                return Err(io::ErrorKind::Unsupported.into());
            }
            let reader = CancellableFile { file: opened, cancel: self.cancel, deadline: self.deadline };
            self.searcher.search_reader(&self.matcher, reader, &mut rows)
        });
        match searched {
            Ok(()) => {
                if rows.is_partial {
                    self.hits.add_partial(&file.absolute);
                }
                self.hits.add_rows(&file.absolute, rows.into_rows());
            }
            Err(_) => self.hits.add_unread(),
        }
    }
}

/// A file whose reads fail once the turn is cancelled or the search has timed out.
struct CancellableFile<'a> {
    file: File,
    cancel: &'a CancellationToken,
    deadline: Instant,
}

impl Read for CancellableFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let is_stopped = self.cancel.is_cancelled() || Instant::now() >= self.deadline;
        if is_stopped { Err(io::Error::other("cut")) } else { self.file.read(buffer) }
    }
}

/// Collects the results of one file.
struct RowCollector {
    output: GrepOutput,
    limit: usize,
    n_lines: u64,
    /// Whether the search ended at a zero byte in a file that looks like text.
    is_partial: bool,
    rows: Vec<MatchRow>,
    /// Rows without the gaps between them, which the limit does not count.
    n_counted: usize,
}

impl RowCollector {
    fn into_rows(mut self) -> Vec<MatchRow> {
        match self.output {
            GrepOutput::Lines => {}
            GrepOutput::Files if self.n_lines > 0 => self.rows.push(MatchRow::File),
            GrepOutput::Count if self.n_lines > 0 => self.rows.push(MatchRow::Count(self.n_lines)),
            GrepOutput::Files | GrepOutput::Count => {}
        }
        self.rows
    }

    /// Accepts one row more than the limit, which shows that there are more.
    fn push(&mut self, row: MatchRow) -> bool {
        self.rows.push(row);
        self.n_counted += 1;
        self.n_counted <= self.limit
    }
}

fn format_line(bytes: &[u8]) -> String {
    truncate_line(String::from_utf8_lossy(bytes).trim_end(), LINE_CHARS_MAX)
}

impl Sink for RowCollector {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, sink_match: &SinkMatch<'_>) -> io::Result<bool> {
        self.n_lines += 1;
        Ok(match self.output {
            GrepOutput::Lines => self.push(MatchRow::Match(
                sink_match.line_number().unwrap_or_default(),
                format_line(sink_match.bytes()),
            )),
            GrepOutput::Files => false,
            GrepOutput::Count => true,
        })
    }

    fn context(&mut self, _: &Searcher, context_line: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.push(MatchRow::Context(
            context_line.line_number().unwrap_or_default(),
            format_line(context_line.bytes()),
        )))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        self.rows.push(MatchRow::Gap);
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, offset: u64) -> io::Result<bool> {
        self.is_partial = offset >= SNIFFED_BYTES as u64;
        Ok(true)
    }
}
