//! The scripted model for those who are not written in Rust: prints its base URL, takes its script on stdin and ends
//! when stdin does.
//!
//! A line on stdin is one more answer (see `Script`), or `aside` before an answer to every request that offers no tools,
//! or `release`, which lets a `hold` go on, or `requests`, which forgets the answers that are left. Each is answered by one line: what was asked since the last `requests`, as JSON,
//! or `ok`. What it had to refuse it says at the end, and fails.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program, and this is its interface")]

use std::io;
use std::process::ExitCode;

use crow_testkit::{ModelServer, Script};
use serde_json::Value;

fn main() -> io::Result<ExitCode> {
    let server = ModelServer::start(Script::default());
    println!("{}", server.base_url());
    let mut n_told = 0;
    for line in io::stdin().lines() {
        let said = match line?.as_str() {
            "release" => {
                server.release();
                "ok".to_owned()
            }
            "requests" => {
                let requests = server.requests().split_off(n_told);
                n_told += requests.len();
                server.replace_answers(Script::default());
                Value::Array(requests).to_string()
            }
            line => {
                match line.strip_prefix("aside ") {
                    Some(answer) => server.set_side_answers(answer),
                    None => server.add_answers(line),
                }
                "ok".to_owned()
            }
        };
        println!("{said}");
    }
    let refused = server.rejections();
    for why in &refused {
        eprintln!("the model refused {why}");
    }
    Ok(if refused.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
