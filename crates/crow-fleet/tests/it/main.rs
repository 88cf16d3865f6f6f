//! Parents and workers in the process of the test, with a real server. They run where `CROW_TEST_NATS` is set.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod access;
mod cluster;
mod code;
mod doomed_parent;
mod faults;
mod holding_proxy;
mod queued;
mod resumption;
mod takeovers;
mod tasks;
mod world;
