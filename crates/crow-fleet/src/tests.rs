//! Decisions without a server: text in, text out, and properties of what may be lost, doubled and reordered.

mod failures;
mod frames;
mod held;
mod machine;
mod names;
