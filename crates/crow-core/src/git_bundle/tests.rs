use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::*;

const REFERENCE: &str = "refs/heads/crow/quiet-otter";

/// Renders a bundle: `A` and `B` are names of objects, `REF` is the expected reference.
fn bundle(header: &str, pack: &[u8]) -> Vec<u8> {
    let header = header.replace("REF", REFERENCE).replace('A', &"a".repeat(40)).replace('B', &"b".repeat(40));
    [header.as_bytes(), pack].concat()
}

#[track_caller]
fn check(header: &str, expected: &Expect) {
    let bytes = bundle(header, b"PACK\0\0\0\x02\0\0\0\x03rest");
    let shown = match GitBundle::parse(&bytes, REFERENCE) {
        Ok(GitBundle { commit, prerequisites, n_objects, pack }) => {
            let names: Vec<&str> = prerequisites.iter().map(|name| &name[..2]).collect();
            format!("{} needs {names:?}, {n_objects} objects in {} bytes", &commit[..2], pack.len())
        }
        Err(error) => error.to_string(),
    };
    expected.assert_eq(&shown);
}

#[test]
fn git_bundle_has_one_expected_reference() {
    check("# v2 git bundle\nA REF\n\n", &expect!["aa needs [], 3 objects in 16 bytes"]);
    check("# v2 git bundle\n-B\nA REF\n\n", &expect![[r#"aa needs ["bb"], 3 objects in 16 bytes"#]]);
    check(
        "# v2 git bundle\n-B a message\nA REF\n\n",
        &expect![[r#"aa needs ["bb"], 3 objects in 16 bytes"#]],
    );
    let another = expect!["it has another reference than the one that was agreed on"];
    check("# v2 git bundle\nA refs/heads/main\n\n", &another);
    check("# v2 git bundle\nA REFx\n\n", &another);
    check("# v2 git bundle\nA\n\n", &another);
    check("# v2 git bundle\nA REF\nB refs/heads/main\n\n", &another);
    check("# v2 git bundle\nA REF\nB REF\n\n", &another);
    check("# v2 git bundle\n\n", &another);
    check("# v2 git bundle\n-B\n\n", &another);
}

#[test]
fn git_bundle_with_a_damaged_header_is_rejected() {
    let damaged = expect!["its header is damaged"];
    for header in [
        "# v2 git bundle\nA REF\n",
        "# v2 git bundle\nA REF",
        "# v2 git bundle\n-Bx\nA REF\n\n",
        "# v2 git bundle\n-b\nA REF\n\n",
        "# v2 git bundle\nA REF\n-B\n\n",
        "# v2 git bundle\n@filter=blob:none\nA REF\n\n",
        "# v2 git bundle\n ä\n\n",
    ] {
        check(header, &damaged);
    }
    check(
        "# v3 git bundle\n@object-format=sha256\nA REF\n\n",
        &expect!["it is not a git bundle of version 2"],
    );
    let many = format!("# v2 git bundle\n{}A REF\n\n", "-B\n".repeat(257));
    check(&many, &expect!["it requires more than 256 commits"]);
    check(&format!("# v2 git bundle\n-B {}\nA REF\n\n", "x".repeat(5000)), &damaged);
    for pack in [&b""[..], b"PACK", b"PACK\0\0\0\x02\0\0\0", b"KCAP\0\0\0\x02\0\0\0\x03"] {
        let bytes = bundle("# v2 git bundle\nA REF\n\n", pack);
        assert_eq!(GitBundle::parse(&bytes, REFERENCE), Err(GitBundleError::NoPack), "{pack:?}");
    }
}

#[test]
fn git_bundle_of_messages_in_another_encoding_is_read() {
    let bytes = [
        b"# v2 git bundle\n-".to_vec(),
        vec![b'b'; 40],
        b" caf\xe9\n".to_vec(),
        bundle("A REF\n\n", b"PACK\0\0\0\x02\0\0\0\x01"),
    ]
    .concat();
    let parsed = GitBundle::parse(&bytes, REFERENCE).unwrap();
    assert_eq!((parsed.prerequisites, parsed.n_objects), (vec!["b".repeat(40).as_str()], 1));
}

proptest! {
    /// A bundle is parsed as it was written, and a change of its header is noticed or makes another valid header.
    #[test]
    fn git_bundle_is_read_as_written(
        names in proptest::collection::vec("[0-9a-f]{40}", 1..20),
        comments in proptest::collection::vec("[^\n]{0,40}", 20),
        pack in proptest::collection::vec(any::<u8>(), 0..60),
        position in any::<prop::sample::Index>(),
        byte in any::<u8>(),
    ) {
        let pack = [b"PACK\0\0\0\x02".to_vec(), vec![0, 0, 1, 0], pack].concat();
        let mut header = String::from("# v2 git bundle\n");
        let (commit, required) = names.split_first().unwrap();
        for (name, comment) in required.iter().zip(&comments) {
            header.push_str(&format!("-{name} {comment}\n"));
        }
        header.push_str(&format!("{commit} {REFERENCE}\n\n"));
        let mut bytes = [header.as_bytes(), &pack].concat();
        let parsed = GitBundle::parse(&bytes, REFERENCE).unwrap();
        prop_assert_eq!(parsed.commit, commit);
        prop_assert_eq!(&parsed.prerequisites, required);
        prop_assert_eq!((parsed.n_objects, parsed.pack), (256, &pack[..]));
        let index = position.index(bytes.len());
        bytes[index] = byte;
        if let Ok(changed) = GitBundle::parse(&bytes, REFERENCE) {
            prop_assert!(is_object_name(changed.commit));
            prop_assert!(changed.prerequisites.iter().all(|name| is_object_name(name)));
            prop_assert!(changed.pack.starts_with(b"PACK"));
        }
    }

    #[test]
    fn git_bundle_of_any_bytes_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let with_signature = [SIGNATURE, &bytes].concat();
        prop_assert!(GitBundle::parse(&bytes, "HEAD").is_err());
        if let Ok(parsed) = GitBundle::parse(&with_signature, "HEAD") {
            prop_assert!(is_object_name(parsed.commit));
        }
    }
}
