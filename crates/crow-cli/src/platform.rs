//! The state of Crow on the system that it was built for, as docs/user/reference/platforms.md says it.

/// Returns what the user of a system should know, unless Crow is tested there.
pub(crate) fn platform_notice(system: &str, machine: &str, library: &str) -> Option<&'static str> {
    match (system, machine, library) {
        ("linux", "x86_64", "gnu") => None,
        ("linux", "x86_64", _) => Some("Linux with musl: tried by hand, but the tests do not run there"),
        ("linux", "aarch64", _) => Some("Linux on arm64: never run by Crow's developers"),
        ("macos", ..) => {
            Some("macOS: compiled, but never run by Crow's developers, and neither was its sandbox")
        }
        ("windows", ..) => Some("Windows: tried under Wine, but never run on Windows by Crow's developers"),
        _ => Some("Crow was never run on this kind of system by its developers"),
    }
}

/// Returns the notice for this build.
pub(crate) fn current_platform_notice() -> Option<&'static str> {
    let library = if cfg!(target_env = "musl") { "musl" } else { "gnu" };
    platform_notice(std::env::consts::OS, std::env::consts::ARCH, library)
}

#[cfg(test)]
mod tests {
    use super::platform_notice;

    #[track_caller]
    fn check(target: [&str; 3], expected: Option<&str>) {
        let [system, machine, library] = target;
        let notice = platform_notice(system, machine, library);
        assert_eq!(notice.and_then(|text| text.split([':', ' ']).next()), expected, "{target:?}");
    }

    #[test]
    fn only_tested_systems_are_without_a_notice() {
        check(["linux", "x86_64", "gnu"], None);
        check(["linux", "x86_64", "musl"], Some("Linux"));
        check(["linux", "aarch64", "gnu"], Some("Linux"));
        check(["macos", "aarch64", "gnu"], Some("macOS"));
        check(["windows", "x86_64", "gnu"], Some("Windows"));
        check(["freebsd", "x86_64", "gnu"], Some("Crow"));
    }
}
