//! Links debug builds at a fixed address: relocating their 360,000 pointers takes a third of a start, and tests start
//! the program thousands of times. Releases keep their random address.
#![expect(clippy::disallowed_methods, reason = "Cargo passes the target to a build script in variables")]

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}
