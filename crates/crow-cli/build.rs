//! Links the program at a fixed address on Linux with glibc (see `docs/adr/0037-fixed-address.md`), and with the linker
//! script of `packaging/function_order.py` if there is one (see `docs/adr/0038-function-order.md`).
#![expect(clippy::disallowed_methods, reason = "Cargo passes the target to a build script in variables")]

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|found| found == value);
    if is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
    println!("cargo::rerun-if-env-changed=CROW_LINKER_SCRIPT");
    if let Ok(script) = env::var("CROW_LINKER_SCRIPT") {
        println!("cargo::rerun-if-changed={script}");
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{script},--strip-all");
    }
}
