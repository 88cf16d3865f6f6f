//! The interactive terminal: the whole program on a pseudo terminal, from keys to the screen.
#![expect(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod children;
mod commands;
mod endings;
mod questions;
mod resizing;
mod sessions;
mod stage;
mod turns;
mod typing;
