//! Whatever names programs gave their sockets, what is read of the kernel's table are paths that stand in it.
#![no_main]

use crow_core::listening_sockets;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let found = listening_sockets(text);
    for path in &found {
        assert!(path.starts_with('/'), "{path:?}");
        assert!(text.split('\n').skip(1).any(|line| line.ends_with(path)), "{path:?}");
    }
    // One line more takes nothing away.
    let more = format!("{text}\n000000000a: 00000002 00000000 00010000 0001 01 7 /run/x");
    let more = listening_sockets(&more);
    assert!(more.contains("/run/x") && found.iter().all(|path| more.contains(path)), "{text:?}");
});
