//! The header of a git bundle from another machine: what is taken has one commit, and no other reading.
//!
//! The first byte says whether the expected reference is `HEAD`.
#![no_main]

use crow_core::{GitBundle, is_object_name};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    let reference = if *first == b'h' { "HEAD" } else { "refs/heads/crow/quiet-otter" };
    let Ok(bundle) = GitBundle::parse(bytes, reference) else { return };
    assert!(is_object_name(bundle.commit));
    assert!(bundle.prerequisites.iter().all(|name| is_object_name(name)));
    assert!(bundle.pack.starts_with(b"PACK") && bytes.ends_with(bundle.pack));
    // The names alone are the same bundle.
    let required: String = bundle.prerequisites.iter().map(|name| format!("-{name}\n")).collect();
    let header = format!("# v2 git bundle\n{required}{} {reference}\n\n", bundle.commit);
    let plain = [header.as_bytes(), bundle.pack].concat();
    assert_eq!(GitBundle::parse(&plain, reference).as_ref(), Ok(&bundle));
    assert!(GitBundle::parse(bytes, "refs/heads/main").is_err());
});
