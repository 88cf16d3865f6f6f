//! The fake ACP agent as a program; its arguments are its behaviors.

fn main() {
    crow_testkit::agent::serve(std::env::args().skip(1).collect());
}
