use std::fs;

use serde_json::{Value, json};

use super::*;

fn yaml(path: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

#[test]
fn written_files_are_yaml_and_bind_to_loopback() {
    let home = tempfile::tempdir().unwrap();
    assert!(write_search_files(home.path(), ExistingFiles::Keep).unwrap());
    let compose = yaml(&home.path().join("searxng/compose.yaml"));
    let service = &compose["services"]["searxng"];
    assert_eq!(service["ports"], json!(["127.0.0.1:2946:8080"]));
    assert_eq!(service["volumes"][0], "./settings.yml:/etc/searxng/settings.yml:ro");
    assert_eq!(compose["volumes"], json!({"cache": null}));
    let settings = yaml(&home.path().join("searxng/settings.yml"));
    assert_eq!(settings["use_default_settings"], true);
    assert_eq!(settings["search"]["formats"], json!(["html", "json"]));
    assert_eq!(settings["server"]["limiter"], false);
    assert_eq!(settings["server"]["secret_key"].as_str().unwrap().len(), 2 * SECRET_BYTES);
}

#[test]
fn existing_files_stay_unless_replaced() {
    let home = tempfile::tempdir().unwrap();
    let settings = home.path().join("searxng/settings.yml");
    write_search_files(home.path(), ExistingFiles::Keep).unwrap();
    let first = fs::read_to_string(&settings).unwrap();
    assert!(!write_search_files(home.path(), ExistingFiles::Keep).unwrap());
    assert_eq!(fs::read_to_string(&settings).unwrap(), first);
    fs::remove_file(home.path().join("searxng/compose.yaml")).unwrap();
    assert!(write_search_files(home.path(), ExistingFiles::Keep).unwrap());
    assert_eq!(fs::read_to_string(&settings).unwrap(), first);
    assert!(write_search_files(home.path(), ExistingFiles::Replace).unwrap());
    assert_ne!(fs::read_to_string(&settings).unwrap(), first, "each has a secret of its own");
}

#[cfg(unix)]
#[test]
fn settings_are_readable_in_a_private_directory() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    write_search_files(home.path(), ExistingFiles::Keep).unwrap();
    let mode = |path: &str| fs::metadata(home.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("searxng"), 0o700);
    assert_eq!(mode("searxng/settings.yml"), 0o644);
}
