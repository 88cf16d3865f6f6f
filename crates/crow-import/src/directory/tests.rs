use std::fs;

use expect_test::expect;
use tempfile::TempDir;

use super::{
    comment_out_keys,
    files::{FileCopyOutcome, copy_new_file},
};

#[test]
fn multi_line_database_key_is_removed() {
    let text = "a: 1\ndb_uri: sqlite:////home/some\n  body/crow.db\nb: 2\n  # end\n";
    expect![[r#"
        a: 1
        # db_uri: sqlite:////home/some
        #   body/crow.db
        b: 2
          # end
    "#]]
    .assert_eq(&comment_out_keys(text, &["db_uri"]));
}

#[test]
fn copy_fails_only_on_errors_of_the_target() {
    let directory = TempDir::new().unwrap();
    let name = |name: &str| directory.path().join(name);
    let unread = copy_new_file(&name("missing"), directory.path(), "new").unwrap();
    assert!(matches!(unread, FileCopyOutcome::Unreadable(_)));
    fs::write(name("there"), "text").unwrap();
    assert!(copy_new_file(&name("there"), &name("nowhere"), "new").is_err());
}
