use proptest::prelude::*;

use super::*;

fn any_line() -> impl Strategy<Value = String> {
    "[ \t]{0,3}[abé“\" ]{0,4}"
}

fn any_file() -> impl Strategy<Value = String> {
    (prop::collection::vec(any_line(), 1..10), any::<bool>())
        .prop_map(|(lines, is_ended)| lines.join("\n") + if is_ended { "\n" } else { "" })
}

/// A file and a piece of it.
fn file_and_piece() -> impl Strategy<Value = (String, String)> {
    (any_file(), any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(|(file, a, b)| {
        let chars: Vec<char> = file.chars().collect();
        let (a, b) = (a.index(chars.len() + 1), b.index(chars.len() + 1));
        let piece = chars[a.min(b)..a.max(b)].iter().collect();
        (file, piece)
    })
}

fn any_occurrences() -> impl Strategy<Value = EditOccurrences> {
    prop_oneof![Just(EditOccurrences::One), Just(EditOccurrences::All)]
}

fn with_crlf(text: &str) -> String {
    text.replace('\n', "\r\n")
}

/// Whether a piece begins inside the indentation of a line while whole lines elsewhere equal it.
fn is_between_indentations(file: &str, piece: &str) -> bool {
    let bare = |text: &str| {
        let plain = text.replace(['“', '”'], "\"");
        let lines = plain.split('\n').map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
        lines.filter(|line| !line.is_empty()).collect::<Vec<_>>()
    };
    let at = file.find(piece).unwrap();
    let before = file[..at].rsplit('\n').next().unwrap();
    let is_inside = piece.starts_with([' ', '\t']) && !before.is_empty() && before.trim().is_empty();
    let (lines, wanted) = (bare(file), bare(piece));
    // The place itself is among them if it ends with its line.
    let ends_with_line = file[at + piece.trim_end().len()..].split('\n').next().unwrap().trim().is_empty();
    let n_places = lines.windows(wanted.len().max(1)).filter(|lines| *lines == wanted).count();
    is_inside && n_places > usize::from(ends_with_line)
}

proptest! {
    #[test]
    fn unique_piece_is_replaced_exactly((file, old) in file_and_piece(), new in any_file()) {
        let is_unique = !old.is_empty() && file.find(&old) == file.rfind(&old);
        prop_assume!(is_unique && old != new);
        let edited = apply_edit(&file, &old, &new, EditOccurrences::One);
        if is_between_indentations(&file, &old) {
            let is_ambiguous = matches!(edited, Err(EditRefusal::Ambiguous { .. }));
            prop_assert!(is_ambiguous, "{:?}", edited);
            return Ok(());
        }
        let edited = edited.unwrap();
        prop_assert_eq!(&edited.text, &file.replacen(&old, &new, 1));
        prop_assert_eq!((edited.matcher, edited.n_replaced), (EditMatcher::Exact, 1));
    }

    #[test]
    fn ambiguous_piece_is_refused(old in any_file(), between in any_file(), new in any_file()) {
        prop_assume!(!old.is_empty() && old != new);
        let file = format!("{old}{between}{old}");
        let refusal = apply_edit(&file, &old, &new, EditOccurrences::One).unwrap_err();
        let is_ambiguous = matches!(refusal, EditRefusal::Ambiguous { .. });
        prop_assert!(is_ambiguous);
        let edited = apply_edit(&file, &old, &new, EditOccurrences::All).unwrap();
        prop_assert_eq!(edited.text, file.replace(&old, &new));
    }

    /// For every matcher, the text before and after the matched lines stays unchanged.
    #[test]
    fn text_around_match_stays(file in any_file(), old in any_file(), new in any_file()) {
        let Ok(edited) = apply_edit(&file, &old, &new, EditOccurrences::One) else { return Ok(()) };
        let n_lines = old.strip_suffix('\n').unwrap_or(&old).split('\n').count();
        let lines: Vec<&str> = file.split_inclusive('\n').collect();
        let is_blank = |line: &str| edited.matcher == EditMatcher::BlankLines && line.trim().is_empty();
        let n_counting = |lines: &[&str]| lines.iter().filter(|line| !is_blank(line)).count();
        let is_kept = (0..lines.len()).any(|first| (first..=lines.len()).any(|after| {
            n_counting(&lines[first..after]) <= n_lines
                && edited.text.starts_with(&lines[..first].concat())
                && edited.text.ends_with(&lines[after..].concat())
        }));
        prop_assert!(is_kept, "{:?}", edited);
    }

    #[test]
    fn line_endings_make_no_difference(
        file in any_file(), old in any_file(), new in any_file(), occurrences in any_occurrences(),
    ) {
        let of_lf = apply_edit(&file, &old, &new, occurrences);
        let of_crlf = apply_edit(&with_crlf(&file), &old, &new, occurrences);
        match (of_lf, of_crlf) {
            (Ok(of_lf), Ok(of_crlf)) if file.contains('\n') => {
                prop_assert_eq!(with_crlf(&of_lf.text), of_crlf.text);
                prop_assert_eq!(of_lf.line, of_crlf.line);
            }
            (of_lf, of_crlf) => prop_assert_eq!(of_lf, of_crlf),
        }
    }

    #[test]
    fn crlf_pieces_are_found((file, old) in file_and_piece(), new in any_file()) {
        prop_assume!(!old.is_empty() && old != new && file.find(&old) == file.rfind(&old) && file.contains('\n'));
        if is_between_indentations(&file, &old) {
            return Ok(());
        }
        let edited = apply_edit(&with_crlf(&file), &old, &new, EditOccurrences::One).unwrap();
        prop_assert_eq!(edited.text, with_crlf(&file.replacen(&old, &new, 1)));
    }

    /// Loose matches are never invented: with the differences removed on both sides, the old text occurs.
    #[test]
    fn all_lines_of_a_match_are_equal(file in any_file(), old in any_file()) {
        let Ok(edited) = apply_edit(&file, &old, "NEW", EditOccurrences::One) else { return Ok(()) };
        let bare = |text: &str| {
            let plain = text.replace(['“', '”'], "\"");
            let lines = plain.split('\n').map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "));
            let text = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
            let ignores_spaces = edited.matcher == EditMatcher::SymbolSpacing;
            if ignores_spaces { text.replace("\" ", "\"").replace(" \"", "\"") } else { text }
        };
        prop_assert!(bare(&file).contains(&bare(&old)), "{:?}", edited);
    }

    /// The file keeps one kind of line ending for any endings of the arguments.
    #[test]
    fn line_endings_stay_of_one_kind(
        (file, old) in file_and_piece(), new in any_file(), (file_ends, old_ends, new_ends) in any::<(bool, bool, bool)>(),
    ) {
        prop_assume!(file.contains('\n') && old != new);
        let ended = |text: &str, by_crlf| if by_crlf { with_crlf(text) } else { text.to_owned() };
        let (file, old, new) = (ended(&file, file_ends), ended(&old, old_ends), ended(&new, new_ends));
        let Ok(edited) = apply_edit(&file, &old, &new, EditOccurrences::One) else { return Ok(()) };
        let with_lf = edited.text.replace("\r\n", "\n");
        prop_assert_eq!(ended(&with_lf, file_ends), edited.text);
    }

    /// Adds and removes trailing white space, blank lines and indentation: a match is still at the same place.
    #[test]
    fn moved_block_is_found_in_place(
        before in any_file(), block in prop::collection::vec("[ ]{0,4}[xyz]{1,3}", 1..5), after in any_file(),
        by in "[ ]{1,4}", ends in "[ \t]{0,2}", blanks in 0..3_usize,
    ) {
        // With a block indented like the new text, the base of the indentation is ambiguous.
        prop_assume!(block.iter().any(|line| !line.starts_with(' ')));
        let file = format!("{before}\n{}\n{after}", block.join("\n"));
        let moved: Vec<String> = block.iter().map(|line| format!("{by}{line}{ends}")).collect();
        let old = moved.join(&"\n".repeat(blanks + 1));
        let new = format!("{by}new\n{by}  new");
        let Ok(edited) = apply_edit(&file, &old, &new, EditOccurrences::One) else { return Ok(()) };
        let shown = edited.text.strip_prefix(&format!("{before}\n")).and_then(|rest| rest.strip_suffix(&format!("\n{after}")));
        prop_assert_eq!(shown, Some("new\n  new"));
    }
}
