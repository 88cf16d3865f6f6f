//! Values of options.

use std::str::FromStr;

use clap::ValueEnum;

/// Format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Readable markdown
    Md,
    /// One JSON document with everything
    Json,
}

/// Part of a session that is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplaySpan {
    All,
    /// The last prompts, each with what followed.
    Last(usize),
}

impl ReplaySpan {
    pub(crate) const NONE: Self = Self::Last(0);
}

impl FromStr for ReplaySpan {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "all" => Ok(Self::All),
            "none" => Ok(Self::NONE),
            number => number.parse().map(Self::Last).map_err(|_| "expected all, none or a number"),
        }
    }
}
