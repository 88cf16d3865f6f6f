//! Runs the scripted model for tests in other languages: prints its base URL, reads its script from stdin and ends when
//! stdin does.
//!
//! A line on stdin is one more answer (see `Script`), or `aside` before an answer to every request without tools, or
//! `release`, which continues a `hold`, or `accept all`, which ends the checks of requests, or `requests`, which drops the
//! remaining answers. The reply is one line: the requests since the last `requests` as JSON, or `ok`. At the end it prints the rejected requests and fails if there
//! are any.
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
            "accept all" => {
                server.accept_all_requests();
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
