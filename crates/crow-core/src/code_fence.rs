//! Fences around code in Markdown.

/// Returns the fence for a text: backticks, more than any run of them in the text, so that no line of it ends the code.
pub fn code_fence(text: &str) -> String {
    let longest = text.split(|char| char != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::code_fence;

    #[test]
    fn fence_is_longer_than_any_in_the_text() {
        for (text, fence) in [("", "```"), ("a `b` c", "```"), ("a ``` b\n````\n", "`````")] {
            assert_eq!(code_fence(text), fence, "{text}");
        }
    }
}
