/// Returns a number with its noun, such as `1 row` or `2 rows`.
pub fn format_count(n: usize, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}
