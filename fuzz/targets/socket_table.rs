//! The kernel's table of Unix sockets with any names: only paths from the table are returned, and other names make the
//! result incomplete.
#![no_main]

use crow_core::read_socket_table;
use libfuzzer_sys::fuzz_target;

const ROW: &[u8] = b"000000000a: 00000002 00000000 00010000 0001 01 7 ";

fuzz_target!(|data: &[u8]| {
    let found = read_socket_table(data);
    for path in &found.paths {
        assert!(path.starts_with(b"/"), "{path:?}");
        assert!(data.split(|byte| *byte == b'\n').skip(1).any(|line| line.ends_with(path)), "{path:?}");
    }
    // A further line removes nothing.
    let more = [data, b"\n", ROW, b"/run/x\n"].concat();
    let more = read_socket_table(&more);
    assert!(more.paths.contains(b"/run/x".as_slice()) && found.paths.iter().all(|path| more.paths.contains(path)));
    // A name is found unchanged, or the result is incomplete.
    let named = [b"heading\n", ROW, data, b"\n"].concat();
    let named = read_socket_table(&named);
    let is_abstract = data.starts_with(b"@");
    // Its lines may have the format of the table: then its first one is a path.
    let first = data.split(|byte| *byte == b'\n').next().unwrap_or_default();
    assert!(!named.is_complete || is_abstract || named.paths.contains(first));
});
