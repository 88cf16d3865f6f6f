//! Whatever names programs gave their sockets, what is read of the kernel's table are paths that stand in it, and a name that
//! says no place is told.
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
    // One line more takes nothing away.
    let more = [data, b"\n", ROW, b"/run/x\n"].concat();
    let more = read_socket_table(&more);
    assert!(more.paths.contains(b"/run/x".as_slice()) && found.paths.iter().all(|path| more.paths.contains(path)));
    // A name is found as it is, or told.
    let named = [b"heading\n", ROW, data, b"\n"].concat();
    let named = read_socket_table(&named);
    let is_abstract = data.starts_with(b"@");
    // Its lines can be spelled like those of the table: then its first is a path, and where it leads is looked at.
    let first = data.split(|byte| *byte == b'\n').next().unwrap_or_default();
    assert!(!named.is_whole || is_abstract || named.paths.contains(first));
});
