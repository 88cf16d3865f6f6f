//! Drives the fake agent of `crow-testkit` through the public interface.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod client_side;
mod endings;
mod examples;
mod sessions;
mod sockets;
mod turns;
mod world;
