//! The samples as an SVG: one chart below the other, with the number of turns from left to right.

use std::fmt::Write as _;

use super::sample::ResourceSample;

const WIDTH: f64 = 720.0;
const CHART_HEIGHT: f64 = 130.0;
const MARGIN_LEFT: f64 = 60.0;
const MARGIN_TOP: f64 = 28.0;

/// The colours of the lines of a chart, readable on white and on black.
const COLOURS: [&str; 3] = ["#2f7ed8", "#d9822b", "#3a9b5c"];

struct ChartLine {
    name: &'static str,
    value: fn(&ResourceSample) -> f64,
}

struct ResourceChart {
    unit: &'static str,
    lines: &'static [ChartLine],
}

const CHARTS: [ResourceChart; 3] = [
    ResourceChart {
        unit: "MB",
        lines: &[
            ChartLine { name: "resident", value: |sample| sample.resident_kb as f64 / 1e3 },
            ChartLine { name: "private", value: |sample| sample.private_kb as f64 / 1e3 },
        ],
    },
    ResourceChart {
        unit: "",
        lines: &[
            ChartLine { name: "descriptors", value: |sample| sample.n_descriptors as f64 },
            ChartLine { name: "threads", value: |sample| sample.n_threads as f64 },
            ChartLine { name: "processes", value: |sample| sample.n_processes as f64 },
        ],
    },
    ResourceChart {
        unit: "MB",
        lines: &[ChartLine { name: "database", value: |sample| sample.database_kb as f64 / 1e3 }],
    },
];

pub(crate) fn render_plot(samples: &[ResourceSample]) -> String {
    let height = CHARTS.len() as f64 * (CHART_HEIGHT + MARGIN_TOP) + MARGIN_TOP;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height}\" fill=\"white\"/>\n"
    );
    for (index, chart) in CHARTS.iter().enumerate() {
        let top = index as f64 * (CHART_HEIGHT + MARGIN_TOP) + MARGIN_TOP;
        draw_chart(&mut svg, chart, samples, top);
    }
    let n_turns = samples.last().map_or(0, |sample| sample.turn);
    let (x, y) = (WIDTH - 10.0, height - 8.0);
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{n_turns} turns</text>\n</svg>");
    svg
}

/// Draws a chart; writing to a string does not fail.
fn draw_chart(svg: &mut String, chart: &ResourceChart, samples: &[ResourceSample], top: f64) {
    let values = |line: &ChartLine| samples.iter().map(line.value).collect::<Vec<_>>();
    let maximum = chart.lines.iter().flat_map(values).fold(1.0, f64::max);
    let bottom = top + CHART_HEIGHT;
    let right = WIDTH - 10.0;
    let _ =
        writeln!(svg, "<path d=\"M{MARGIN_LEFT} {top}V{bottom}H{right}\" fill=\"none\" stroke=\"#888\"/>");
    let (x, y, unit) = (MARGIN_LEFT - 6.0, top + 10.0, chart.unit);
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"end\">{maximum:.0} {unit}</text>");
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{bottom}\" text-anchor=\"end\">0</text>");
    let n_turns = samples.last().map_or(1, |sample| sample.turn) as f64;
    for (index, (line, colour)) in chart.lines.iter().zip(COLOURS).enumerate() {
        let points = samples.iter().map(|sample| {
            let x = MARGIN_LEFT + sample.turn as f64 / n_turns * (right - MARGIN_LEFT);
            format!("{x:.1},{:.1}", bottom - (line.value)(sample) / maximum * CHART_HEIGHT)
        });
        let points = points.collect::<Vec<_>>().join(" ");
        let _ = writeln!(
            svg,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.5\"/>"
        );
        let (x, y, name) = (MARGIN_LEFT + index as f64 * 100.0, top - 8.0, line.name);
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" fill=\"{colour}\">{name}</text>");
    }
}
