//! Fills the header of a page with known values. Pure.

/// The values for a page's header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageHeader<'a> {
    /// The name of the feature's directory.
    pub(crate) name: &'a str,
    /// The date in ISO format.
    pub(crate) date: &'a str,
    /// The user's description; empty for pages without one.
    pub(crate) description: &'a str,
}

/// Replaces the placeholders of the header in one pass, so that user input is never searched for placeholders.
pub(crate) fn fill_header(page: &str, header: PageHeader<'_>) -> String {
    let title = title_from_name(header.name);
    // A header is one line.
    let description = header.description.split_whitespace().collect::<Vec<_>>().join(" ");
    let placeholders = [
        ("[FEATURE NAME]", title.as_str()),
        ("[FEATURE]", title.as_str()),
        ("[###-feature-name]", header.name),
        ("[DATE]", header.date),
        ("[link]", "[spec.md](spec.md)"),
        ("$ARGUMENTS", description.as_str()),
    ];
    let mut filled = String::with_capacity(page.len());
    let mut rest = page;
    while let Some(offset) = rest.find(['[', '$']) {
        let (before, after) = rest.split_at(offset);
        filled.push_str(before);
        let placeholder =
            placeholders.iter().find(|(place, text)| after.starts_with(place) && !text.is_empty());
        let (n_bytes, text) = match placeholder {
            Some((placeholder, text)) => (placeholder.len(), *text),
            None => (1, &after[..1]),
        };
        filled.push_str(text);
        rest = &after[n_bytes..];
    }
    filled.push_str(rest);
    filled
}

/// Makes a title of a directory name.
fn title_from_name(name: &str) -> String {
    let words = crate::numbering::parse_dir_prefix(name)
        .map_or(name, |prefix| &name[prefix.len() + 1..])
        .replace('-', " ");
    let mut chars = words.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_filled(page: &str, expected: &str) {
        let header = PageHeader {
            name: "001-photo-albums",
            date: "2026-01-02",
            description: "albums\n## [DATE] of `$ARGUMENTS`",
        };
        assert_eq!(fill_header(page, header), expected);
    }

    #[test]
    fn header_is_filled_in_one_pass() {
        assert_filled("# Spec: [FEATURE NAME]\n", "# Spec: Photo albums\n");
        assert_filled(
            "`[###-feature-name]` | [DATE] | [link]",
            "`001-photo-albums` | 2026-01-02 | [spec.md](spec.md)",
        );
        assert_filled("said: \"$ARGUMENTS\" $5 [", "said: \"albums ## [DATE] of `$ARGUMENTS`\" $5 [");
        assert_filled("Größe [FEATURE]é", "Größe Photo albumsé");
    }

    #[test]
    fn unknown_placeholders_stay() {
        let header = PageHeader { name: "20260101-120000-übung", date: "2026-01-02", description: "" };
        assert_eq!(fill_header("[FEATURE] $ARGUMENTS", header), "Übung $ARGUMENTS");
    }
}
