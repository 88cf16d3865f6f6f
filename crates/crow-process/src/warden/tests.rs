#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use std::path::PathBuf;

use crow_core::{Confinement, Network};
use expect_test::{Expect, expect};

use super::{
    Confine, StandingRules, Warden,
    orders::{Orders, USAGE},
};

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[track_caller]
fn check(line: &str, expect: Expect) {
    let read = match Orders::parse(words(line)) {
        Ok(orders) => format!("{:?} {:?}\n", orders.confinement, orders.network) + &orders.spell().join(" "),
        Err(bad) => bad.to_string(),
    };
    expect.assert_eq(&read);
}

#[test]
fn orders_are_read_and_written() {
    check("-- make all", expect![["ReadOnly Open\nsandbox-exec --read-only -- make all"]]);
    check("--free -- make -- -x", expect![["Free Open\nsandbox-exec --free -- make -- -x"]]);
    check(
        "--free --hide-secrets --hide MINE -- make",
        expect![["Free Open\nsandbox-exec --free --hide-secrets --hide MINE -- make"]],
    );
    check(
        "--no-network --for 12 --protect /a/b --write /a --write /c -- make",
        expect![[
            "Project Closed\nsandbox-exec --write /a --write /c --protect /a/b --no-network --for 12 -- make"
        ]],
    );
}

#[test]
fn bad_orders_are_refused() {
    check("", expect!["there is no command behind `--`"]);
    check("--", expect!["there is no command behind `--`"]);
    check("--read-only make", expect!["there is no option make"]);
    check("--writ /a -- make", expect!["there is no option --writ"]);
    check("--write", expect!["--write needs a value"]);
    check("--for 0 -- make", expect!["0 is not the number of a process"]);
    check("--free --write /a -- make", expect!["--free, --read-only and --write exclude each other"]);
    check("--read-only --write /a -- make", expect!["--free, --read-only and --write exclude each other"]);
    check("--free --read-only -- make", expect!["--free, --read-only and --write exclude each other"]);
    let options = [
        "--free",
        "--read-only",
        "--write",
        "--protect",
        "--no-network",
        "--hide",
        "--hide-secrets",
        "--for",
    ];
    for option in options {
        assert!(USAGE.contains(option));
    }
}

#[test]
fn a_command_is_wrapped_as_it_is_held() {
    let rules = StandingRules {
        network: Network::Closed,
        writable: vec!["/tmp".into(), "relative".into()],
        protected: vec!["/p/.crow".into()],
    };
    let exe = std::env::current_exe().unwrap();
    let warden = Warden::new(exe.clone(), rules);
    let wrapped = |confinement| {
        let confine = Confine { confinement, writable: vec![PathBuf::from("/p")], hidden: None };
        let (program, args) = warden.around(&confine, "sh", &words("-c true"));
        assert_eq!(PathBuf::from(program), exe);
        args.join(" ").replace(&std::process::id().to_string(), "PID")
    };
    expect!["sandbox-exec --free --no-network --for PID -- sh -c true"]
        .assert_eq(&wrapped(Confinement::Free));
    expect!["sandbox-exec --read-only --no-network --for PID -- sh -c true"]
        .assert_eq(&wrapped(Confinement::ReadOnly));
    expect!["sandbox-exec --write /p --write /tmp --protect /p/.crow --no-network --for PID -- sh -c true"]
        .assert_eq(&wrapped(Confinement::Project));
}

#[test]
fn an_executable_that_was_replaced_is_found() {
    let warden = Warden::new("/no/such/crow-cli".into(), StandingRules::default());
    let (program, _) = warden.around(&Confine::FREE, "sh", &[]);
    assert_eq!(std::fs::canonicalize(program).unwrap(), std::env::current_exe().unwrap());
}
