//! Arguments of `worker`.

use std::path::PathBuf;

use clap::Args;

use super::run::ModeValueParser;

/// Arguments of `worker`.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// The NATS servers, separated by commas, such as nats://127.0.0.1:4222 or tls://nats.example.com
    #[arg(long, value_name = "URL")]
    pub(crate) nats: String,
    /// A queue to take tasks from, which is made if it does not exist; repeat for more
    #[arg(long = "queue", value_name = "NAME", value_parser = parse_name, required = true)]
    pub(crate) queues: Vec<String>,
    /// Run this many tasks at the same time
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) slots: u16,
    /// The name of the worker in the queue's subjects [default: a random one]
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) name: Option<String>,
    /// Allow tasks at most this permission mode [default: the configured mode]
    #[arg(long, value_name = "MODE", value_parser = ModeValueParser)]
    pub(crate) mode: Option<String>,
    /// Make the directories of tasks here [default: ~/.local/state/crow/worker]
    #[arg(long, value_name = "DIR")]
    pub(crate) workspaces: Option<PathBuf>,
    /// After SIGTERM, give running tasks this many seconds before they are given back
    #[arg(long, value_name = "SECONDS", default_value_t = 90)]
    pub(crate) drain: u64,
    /// Store each message on this many servers, where the queue is made: 1, 3 or 5
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = parse_replicas)]
    pub(crate) replicas: u8,
    #[command(flatten)]
    pub(crate) credentials: NatsCredentialArgs,
}

/// Arguments of `fleet`.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// The NATS servers, separated by commas, such as nats://127.0.0.1:4222 or tls://nats.example.com
    #[arg(long, value_name = "URL")]
    pub(crate) nats: String,
    /// Only this queue
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub(crate) queue: Option<String>,
    /// Look again every two seconds
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Print JSON
    #[arg(short, long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) credentials: NatsCredentialArgs,
}

/// The credentials at a NATS server; secrets are in files.
#[derive(Debug, Args)]
pub(crate) struct NatsCredentialArgs {
    /// Log in with the token in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["user", "creds_file", "nkey_file"])]
    pub(crate) token_file: Option<PathBuf>,
    /// Log in as this user
    #[arg(long, value_name = "NAME", requires = "password_file", conflicts_with_all = ["creds_file", "nkey_file"])]
    pub(crate) user: Option<String>,
    /// Log in with the password in this file
    #[arg(long, value_name = "FILE", requires = "user")]
    pub(crate) password_file: Option<PathBuf>,
    /// Log in with the JWT and the key in this file
    #[arg(long, value_name = "FILE", conflicts_with = "nkey_file")]
    pub(crate) creds_file: Option<PathBuf>,
    /// Log in with the seed of an NKey in this file
    #[arg(long, value_name = "FILE")]
    pub(crate) nkey_file: Option<PathBuf>,
    /// Require TLS, and a certificate that the authority in this file signed
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_file: Option<PathBuf>,
}

fn parse_name(text: &str) -> Result<String, String> {
    match crow_fleet::is_subject_token(text) {
        true => Ok(text.to_owned()),
        false => Err("expected at most 64 letters, digits, - and _".to_owned()),
    }
}

/// Parses a number of servers that can lose one more than a smaller number could.
fn parse_replicas(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(number @ (1 | 3 | 5)) => Ok(number),
        Ok(number @ (2 | 4)) => Err(format!(
            "expected 1, 3 or 5: more than half must agree, so {number} servers bear no more losses than {}",
            number - 1
        )),
        Ok(_) | Err(_) => Err("expected 1, 3 or 5".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::parse_replicas;

    #[test]
    fn replicas_are_odd() {
        let parsed: Vec<String> = ["0", "1", "2", "3", "4", "5", "7", "x"]
            .map(|text| format!("{text}: {:?}", parse_replicas(text)))
            .into();
        expect![[r#"
            0: Err("expected 1, 3 or 5")
            1: Ok(1)
            2: Err("expected 1, 3 or 5: more than half must agree, so 2 servers bear no more losses than 1")
            3: Ok(3)
            4: Err("expected 1, 3 or 5: more than half must agree, so 4 servers bear no more losses than 3")
            5: Ok(5)
            7: Err("expected 1, 3 or 5")
            x: Err("expected 1, 3 or 5")"#]]
        .assert_eq(&parsed.join("\n"));
    }
}
