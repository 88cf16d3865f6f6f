//! The environment as other processes see it.

use std::collections::BTreeMap;

/// Does nothing: every program of the same user can read the memory of this one.
///
/// # Safety
///
/// Always safe; on other systems no other thread may exist.
#[expect(unsafe_code, reason = "the same signature as on other systems")]
pub unsafe fn hide_environment() {}

/// Adds the names that other systems have for the same: `PATH`, whose spelling varies here, and `HOME`.
pub fn complete_environment(variables: &mut BTreeMap<String, String>) {
    let find = |variables: &BTreeMap<String, String>, wanted: &str| {
        let mut entries = variables.iter().filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        entries.next().map(|(_, value)| value.clone())
    };
    for (name, source) in [("PATH", "PATH"), ("HOME", "USERPROFILE")] {
        if !variables.contains_key(name)
            && let Some(value) = find(variables, source)
        {
            variables.insert(name.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::complete_environment;

    #[test]
    fn usual_names_are_added() {
        let variables = [("Path", r"C:\x"), ("UserProfile", r"C:\Users\me")];
        let mut variables: BTreeMap<String, String> =
            variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        complete_environment(&mut variables);
        assert_eq!((variables["PATH"].as_str(), variables["HOME"].as_str()), (r"C:\x", r"C:\Users\me"));
    }
}
