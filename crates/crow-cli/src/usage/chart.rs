//! The chart of days as SVG.

use crow_core::scale_amount;
use jiff::civil::Date;

use super::report::{UsageReport, UsageSum};

/// Sizes in pixels.
const HEIGHT: u64 = 180;
const DAY_WIDTH_MIN: u64 = 14;
const BAR_WIDTH_MAX: u64 = 40;
const BAR_GAP: u64 = 3;
const MARGIN: u64 = 44;
const WIDTH_MIN: u64 = 640;

/// Renders the chart of the days: a bar for the tokens of each, its cached part lighter.
pub(super) fn render_svg(report: &UsageReport) -> String {
    let largest = report.days.values().map(UsageSum::total_tokens).max().unwrap_or_default();
    let (first, last) = (*report.dates.start(), *report.dates.end());
    let n_days = n_days(first, last);
    let width = (n_days * DAY_WIDTH_MIN + 2 * MARGIN).max(WIDTH_MIN);
    // The days take the whole width, so that the dates at its ends are those of the first and the last bar.
    let day_width = (width - 2 * MARGIN) / n_days;
    let bar_width = (day_width - BAR_GAP).min(BAR_WIDTH_MAX);
    let right = MARGIN + n_days * day_width;
    let (bottom, height) = (MARGIN + HEIGHT, HEIGHT + 2 * MARGIN);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <title>Tokens by day</title>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"{MARGIN}\" y=\"20\" fill=\"#333333\">{}</text>\n\
         <line x1=\"{MARGIN}\" y1=\"{bottom}\" x2=\"{right}\" y2=\"{bottom}\" stroke=\"#999999\"/>\n",
        report.summary(),
    );
    for (day, sum) in &report.days {
        let x = MARGIN + n_days_between(first, *day) * day_width + (day_width - bar_width) / 2;
        let bar = scale_amount(sum.total_tokens(), largest, HEIGHT).max(1);
        let cached = scale_amount(sum.usage.cached, largest, HEIGHT).min(bar);
        let label = format!("{day}: {} tokens", crow_core::format_tokens(sum.total_tokens()));
        svg.push_str(&format!(
            "<g><title>{label}</title>\
             <rect x=\"{x}\" y=\"{}\" width=\"{bar_width}\" height=\"{bar}\" fill=\"#2f6fb2\"/>\
             <rect x=\"{x}\" y=\"{}\" width=\"{bar_width}\" height=\"{cached}\" fill=\"#a9c8e8\"/></g>\n",
            bottom - bar,
            bottom - cached,
        ));
    }
    let label_y = bottom + 16;
    svg.push_str(&format!(
        "<text x=\"{MARGIN}\" y=\"{label_y}\" fill=\"#333333\">{first}</text>\n\
         <text x=\"{right}\" y=\"{label_y}\" text-anchor=\"end\" fill=\"#333333\">{last}</text>\n\
         <text x=\"{MARGIN}\" y=\"{}\" fill=\"#333333\">largest day: {} tokens; light: read from the provider's cache</text>\n\
         </svg>\n",
        label_y + 16,
        crow_core::format_tokens(largest),
    ));
    svg
}

fn n_days(first: Date, last: Date) -> u64 {
    n_days_between(first, last) + 1
}

fn n_days_between(first: Date, day: Date) -> u64 {
    u64::from(first.until(day).map_or(0, |span| span.get_days()).unsigned_abs())
}
