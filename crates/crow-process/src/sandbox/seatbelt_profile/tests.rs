use crow_core::{Confinement, NetworkAccess};
use expect_test::{Expect, expect};

use super::{BASE, DEVICES, fold_case, render_profile};
use crate::launch_spec::LaunchSpec;

/// Compares what follows the parts that every profile has.
#[track_caller]
fn check(spec: &LaunchSpec, expect: &Expect) {
    let profile = render_profile(spec).unwrap_or_else(|error| format!("{BASE}{DEVICES}{error}"));
    expect.assert_eq(profile.strip_prefix(BASE).unwrap().strip_prefix(DEVICES).unwrap());
}

fn project() -> LaunchSpec {
    LaunchSpec {
        confinement: Confinement::Project,
        roots: vec!["/Users/me/a \"b\"".into()],
        writable: vec!["/private/tmp".into()],
        caches: vec!["/Users/me/Library/Caches/pip".into()],
        protected: vec!["/Users/me/.crow".into()],
        network: NetworkAccess::Denied,
        ..LaunchSpec::default()
    }
}

#[test]
fn profile_of_a_reading_command_allows_no_write() {
    let spec = LaunchSpec { network: NetworkAccess::Denied, ..LaunchSpec::default() };
    check(
        &spec,
        &expect![[r#"
        (allow mach-lookup
          (global-name "com.apple.FSEvents")
          (global-name "com.apple.bsd.dirhelper")
          (global-name "com.apple.cfprefsd.agent")
          (global-name "com.apple.cfprefsd.daemon")
          (global-name "com.apple.diagnosticd")
          (global-name "com.apple.logd")
          (global-name "com.apple.system.logger")
          (global-name "com.apple.system.notification_center")
          (global-name "com.apple.system.opendirectoryd.libinfo")
          (global-name "com.apple.system.opendirectoryd.membership"))
    "#]],
    );
}

#[test]
fn profile_allows_writes_in_the_project_and_denies_what_runs_later() {
    check(
        &project(),
        &expect![[r#"
        (allow mach-lookup
          (global-name "com.apple.FSEvents")
          (global-name "com.apple.bsd.dirhelper")
          (global-name "com.apple.cfprefsd.agent")
          (global-name "com.apple.cfprefsd.daemon")
          (global-name "com.apple.diagnosticd")
          (global-name "com.apple.logd")
          (global-name "com.apple.system.logger")
          (global-name "com.apple.system.notification_center")
          (global-name "com.apple.system.opendirectoryd.libinfo")
          (global-name "com.apple.system.opendirectoryd.membership"))
        (allow file-write*
          (subpath "/Users/me/a \"b\"")
          (subpath "/private/tmp")
          (subpath "/Users/me/Library/Caches/pip"))
        (allow network-outbound
          (remote unix-socket (subpath "/Users/me/a \"b\"")))
        (allow network-bind
          (local unix-socket (subpath "/Users/me/a \"b\"")))
        (deny file-write*
          (regex #"/\.[gG][iI][tT]$")
          (regex #"/\.[gG][iI][tT]/([cC][oO][mM][mM][oO][nN][dD][iI][rR]|[cC][oO][nN][fF][iI][gG]|[cC][oO][nN][fF][iI][gG]\.[wW][oO][rR][kK][tT][rR][eE][eE]|[hH][oO][oO][kK][sS]|[mM][oO][dD][uU][lL][eE][sS]|[wW][oO][rR][kK][tT][rR][eE][eE][sS])(/|$)")
          (regex #"/(\.[pP][rR][eE]-[cC][oO][mM][mM][iI][tT]-[cC][oO][nN][fF][iI][gG]\.[yY][aA][mM][lL]|\.[pP][rR][eE]-[cC][oO][mM][mM][iI][tT]-[cC][oO][nN][fF][iI][gG]\.[yY][mM][lL]|[lL][eE][fF][tT][hH][oO][oO][kK]\.[yY][mM][lL]|\.[lL][eE][fF][tT][hH][oO][oO][kK]\.[yY][mM][lL]|[lL][eE][fF][tT][hH][oO][oO][kK]-[lL][oO][cC][aA][lL]\.[yY][mM][lL]|\.[lL][eE][fF][tT][hH][oO][oO][kK]-[lL][oO][cC][aA][lL]\.[yY][mM][lL]|\.[oO][vV][eE][rR][cC][oO][mM][mM][iI][tT]\.[yY][mM][lL])(/|$)")
          (subpath "/Users/me/.crow"))
    "#]],
    );
}

#[test]
fn profile_with_a_network_has_its_services() {
    check(
        &LaunchSpec::default(),
        &expect![[r#"
        (allow mach-lookup
          (global-name "com.apple.FSEvents")
          (global-name "com.apple.bsd.dirhelper")
          (global-name "com.apple.cfprefsd.agent")
          (global-name "com.apple.cfprefsd.daemon")
          (global-name "com.apple.diagnosticd")
          (global-name "com.apple.logd")
          (global-name "com.apple.system.logger")
          (global-name "com.apple.system.notification_center")
          (global-name "com.apple.system.opendirectoryd.libinfo")
          (global-name "com.apple.system.opendirectoryd.membership"))
        (allow system-socket)
        (allow network-outbound (remote ip "*:*"))
        (allow network-inbound (local ip "*:*"))
        (allow network-bind (local ip "*:*"))
        (allow network-outbound (remote unix-socket (path-literal "/private/var/run/mDNSResponder")))
        (allow mach-lookup
          (global-name "com.apple.SystemConfiguration.DNSConfiguration")
          (global-name "com.apple.SystemConfiguration.configd")
          (global-name "com.apple.dnssd.service")
          (global-name "com.apple.trustd")
          (global-name "com.apple.trustd.agent"))
    "#]],
    );
}

#[test]
fn profile_protects_the_startup_files_of_the_home_directory() {
    let profile = render_profile(&LaunchSpec { home: Some("/Users/me".into()), ..project() }).unwrap();
    for path in [".zshrc", ".gitconfig", ".ssh", ".cargo/bin"] {
        assert!(profile.contains(&format!("(subpath \"/Users/me/{path}\")")), "{path}");
    }
}

#[test]
fn profile_guards_files_that_other_programs_run() {
    let plain = render_profile(&project()).unwrap();
    let guarded = render_profile(&LaunchSpec { guards_autorun: true, ..project() }).unwrap();
    let added: Vec<&str> =
        guarded.lines().filter(|line| !plain.contains(line.trim_end_matches(')'))).collect();
    let [rule] = added.as_slice() else { panic!("{added:?}") };
    assert!(rule.contains("(require-all (subpath \"/Users/me/a \\\"b\\\"\") (regex "), "{rule}");
    for name in [".vscode", "mise.toml", "*.code-workspace", ".cargo/config.toml", ".config/git"] {
        assert!(rule.contains(&fold_case(name)), "{name}");
    }
}

#[test]
fn profile_rejects_control_characters() {
    let spec = LaunchSpec { roots: vec!["/a\n(allow default)".into()], ..project() };
    check(
        &spec,
        &expect![[
            r#"the sandbox cannot have the path "/a\n(allow default)", which contains a control character"#
        ]],
    );
}

/// Text of a path never ends the string or the rule that it is in.
#[test]
fn profile_has_balanced_parentheses() {
    let hostile = LaunchSpec {
        roots: vec!["/a) (allow default)".into(), "/b\\".into(), "/c\" \\\" \"".into()],
        guards_autorun: true,
        ..project()
    };
    let profile = render_profile(&hostile).unwrap();
    let (mut depth, mut in_string, mut is_escaped) = (0, false, false);
    let mut n_rules = 0;
    for letter in profile.chars() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' if in_string => is_escaped = true,
            '"' => in_string = !in_string,
            '(' if !in_string => depth += 1,
            ')' if !in_string => {
                depth -= 1;
                n_rules += usize::from(depth == 0);
            }
            _ => {}
        }
        assert!(depth >= 0);
    }
    assert!(depth == 0 && !in_string);
    let plain = render_profile(&project()).unwrap();
    assert_eq!(n_rules, plain.lines().filter(|line| line.starts_with('(')).count());
}
