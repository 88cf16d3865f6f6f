#![expect(clippy::needless_pass_by_value, reason = "`expect!` reads best in place")]

use std::{path::PathBuf, sync::Arc};

use crow_core::{Confinement, NetworkAccess, PartialSandbox, SandboxSupport};
use expect_test::{Expect, expect};
use tokio::sync::OnceCell;

use super::{CommandConfinement, SandboxDefaults, SandboxWrapper};
use crate::launch_spec::{LaunchSpec, USAGE};

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[track_caller]
fn check(line: &str, expect: Expect) {
    let read = match LaunchSpec::parse(words(line)) {
        Ok(orders) => {
            format!("{:?} {:?}\n", orders.confinement, orders.network) + &orders.into_args().join(" ")
        }
        Err(bad) => bad.to_string(),
    };
    expect.assert_eq(&read);
}

#[test]
fn launch_spec_round_trips() {
    check(
        "-- make all",
        expect![[r#"
        ReadOnly Allowed
        sandbox-exec --read-only -- make all"#]],
    );
    check(
        "--free -- make -- -x",
        expect![[r#"
        Unconfined Allowed
        sandbox-exec --free -- make -- -x"#]],
    );
    check(
        "--free --hide-secrets --hide MINE -- make",
        expect![[r#"
            Unconfined Allowed
            sandbox-exec --free --hide-secrets --hide MINE -- make"#]],
    );
    check(
        "--no-network --for 12 --protect /a/b --write /a --write /c -- make",
        expect![[r#"
            Project Denied
            sandbox-exec --write /a --write /c --protect /a/b --no-network --for 12 -- make"#]],
    );
    check(
        "--no-namespace --cache /c --write-beside /tmp --repository /r --home /h --runtime /u -- make",
        expect![[r#"
            Project Allowed
            sandbox-exec --write-beside /tmp --cache /c --repository /r --home /h --runtime /u --no-namespace -- make"#]],
    );
}

#[test]
fn launch_spec_rejects_invalid_arguments() {
    check("", expect!["there is no command after `--`"]);
    check("--", expect!["there is no command after `--`"]);
    check("--read-only make", expect!["there is no option make"]);
    check("--writ /a -- make", expect!["there is no option --writ"]);
    check("--write", expect!["--write needs a value"]);
    check("--for 0 -- make", expect!["0 is not a process ID"]);
    check(
        "--free --write /a -- make",
        expect!["--free, --read-only and --write or --write-beside exclude each other"],
    );
    check(
        "--read-only --write /a -- make",
        expect!["--free, --read-only and --write or --write-beside exclude each other"],
    );
    check(
        "--free --read-only -- make",
        expect!["--free, --read-only and --write or --write-beside exclude each other"],
    );
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
fn command_is_wrapped_by_confinement() {
    let rules = SandboxDefaults {
        network: NetworkAccess::Denied,
        writable: vec!["/tmp".into(), "relative".into()],
        caches: vec!["/home/me/.cache/x".into()],
        protected: vec!["/p/.crow".into()],
        home: Some("/home/me".into()),
        runtime_dir: None,
    };
    let exe = std::env::current_exe().unwrap();
    let wrapper = SandboxWrapper::new(exe.clone(), rules);
    let wrapped = |confinement| {
        let confine = CommandConfinement {
            level: confinement,
            writable: vec![PathBuf::from("/p")],
            hidden_variables: None,
            repositories: vec![PathBuf::from("/r/.git")],
            keeps_repositories: true,
            has_grace: false,
        };
        let (program, args) = wrapper.wrap_command(&confine, "sh", &words("-c true"));
        assert_eq!(PathBuf::from(program), exe);
        args.join(" ").replace(&std::process::id().to_string(), "PID")
    };
    expect!["sandbox-exec --free --no-network --for PID -- sh -c true"]
        .assert_eq(&wrapped(Confinement::Unconfined));
    expect!["sandbox-exec --read-only --home /home/me --no-network --for PID -- sh -c true"]
        .assert_eq(&wrapped(Confinement::ReadOnly));
    expect![
        "sandbox-exec --write /p --write-beside /tmp --cache /home/me/.cache/x --protect /p/.crow --repository /r/.git --keep-repositories --home /home/me --no-network --for PID -- sh -c true"
    ]
    .assert_eq(&wrapped(Confinement::Project));
}

#[test]
fn command_has_a_namespace_unless_there_is_none() {
    let wrapper = SandboxWrapper::new(std::env::current_exe().unwrap(), SandboxDefaults::default());
    let confine = CommandConfinement { level: Confinement::ReadOnly, ..CommandConfinement::UNCONFINED };
    let goes_without = |wrapper: &SandboxWrapper| {
        wrapper.wrap_command(&confine, "true", &[]).1.contains(&"--no-namespace".to_owned())
    };
    assert!(!goes_without(&wrapper), "not probed yet");
    let partial = |no_namespace| PartialSandbox { namespace_problem: no_namespace, signals_unconfined: true };
    let known = |support: SandboxSupport| SandboxWrapper {
        support: Arc::new(OnceCell::new_with(Some(support))),
        ..wrapper.clone()
    };
    assert!(goes_without(&known(SandboxSupport::Partial(partial(Some("x".into()))))));
    assert!(!goes_without(&known(SandboxSupport::Partial(partial(None)))));
    assert!(!goes_without(&known(SandboxSupport::Full)));
    assert!(!goes_without(&known(SandboxSupport::Unavailable { reason: "x".into() })));
}

#[test]
fn executable_is_found_after_replacement() {
    let wrapper = SandboxWrapper::new("/no/such/crow-cli".into(), SandboxDefaults::default());
    let (program, _) = wrapper.wrap_command(&CommandConfinement::UNCONFINED, "sh", &[]);
    assert_eq!(std::fs::canonicalize(program).unwrap(), std::env::current_exe().unwrap());
}
