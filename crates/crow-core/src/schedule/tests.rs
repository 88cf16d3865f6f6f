use super::*;
use crate::ToolKind;

/// Calls in the form `r PATH..`, `w PATH..`, `x COMMAND` or `-`; for each the earlier ones it waits for.
#[track_caller]
fn check(calls: &str, expected: &[&[usize]]) {
    let calls: Vec<ToolCallInfo> = calls.split(" | ").map(facets).collect();
    let waits: Vec<Vec<usize>> =
        (0..calls.len()).map(|index| conflicting_earlier_calls(&calls, index)).collect();
    assert_eq!(waits, expected);
}

fn facets(call: &str) -> ToolCallInfo {
    let (kind, rest) = call.split_once(' ').unwrap_or((call, ""));
    let paths = || rest.split(' ').map(str::to_owned).collect();
    let access = match kind {
        "r" => ToolAccess::Reads(paths()),
        "w" => ToolAccess::Writes(paths()),
        "x" => ToolAccess::Runs(rest.to_owned()),
        _ => ToolAccess::Nothing,
    };
    ToolCallInfo { title: String::new(), kind: ToolKind::Other, locations: Vec::new(), access }
}

#[test]
fn independent_calls_run_in_parallel() {
    check("r /a | r /a | -", &[&[], &[], &[]]);
    check("w /a | w /b | r /c", &[&[], &[], &[]]);
    check("x ls | x ls | r /a", &[&[], &[], &[]]);
}

#[test]
fn conflicting_calls_run_in_order() {
    check("w /a | w /a | w /a", &[&[], &[0], &[0, 1]]);
    check("r /a | w /a /b | r /b", &[&[], &[0], &[1]]);
    check("w /a | x make | w /b", &[&[], &[0], &[1]]);
    check("w /src/a | r /src | r /srcs | w /src/b", &[&[], &[0], &[], &[1]]);
}

#[test]
fn unknown_call_waits_for_none() {
    assert_eq!(conflicting_earlier_calls(&[], 3), Vec::<usize>::new());
}
