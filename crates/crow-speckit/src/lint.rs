//! Lists the problems in pages that a model wrote, phrased so that it can act on them. Text in, text out; accesses no
//! files.

mod common;
mod constitution;
mod plan;
mod problem;
mod spec;
mod tasks;

pub(crate) use common::find_placeholders;
pub(crate) use constitution::{check_constitution, is_unfilled};
pub(crate) use plan::{check_plan, check_quickstart, check_research};
pub(crate) use problem::{LintProblem, first_problems};
pub(crate) use spec::{MARKERS_MAX, check_spec, summarize_spec};
pub(crate) use tasks::check_tasks;

#[cfg(test)]
pub(crate) fn render_problems(problems: &[LintProblem]) -> String {
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

#[cfg(test)]
mod tests;
