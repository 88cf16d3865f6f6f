//! Splits the command line into the bridge's options and the agent's command. Options of the bridge may follow the
//! command, as in `acp-bridge codex-acp --port 8766`; everything after `--` is the agent's.

use clap::Parser;

use crate::cli::{BridgeArgs, BridgeOptions};

/// Options that take a value.
const OPTIONS: [&str; 9] =
    ["--host", "--port", "--cwd", "--env", "--log", "--log-file", "--token-file", "--path", "--allow-origin"];

/// The option without a value.
const FLAG: &str = "--no-token";

/// Options after the command.
#[derive(Debug, Parser)]
#[command(name = "crow-cli acp-bridge", no_binary_name = true)]
struct TrailingOptions {
    #[command(flatten)]
    options: BridgeOptions,
}

/// Returns the bridge's options and the agent's command line. Options after the command win.
pub(super) fn split_arguments(args: BridgeArgs) -> Result<(BridgeOptions, Vec<String>), clap::Error> {
    let BridgeArgs { options: leading, command, own } = args;
    let (mut bridge_args, mut agent_args) = (Vec::new(), Vec::new());
    let mut words = command.into_iter();
    while let Some(word) = words.next() {
        if word == "--" {
            agent_args.extend(words.by_ref());
        } else if OPTIONS.contains(&word.as_str()) {
            bridge_args.push(word);
            bridge_args.extend(words.next());
        } else if word == FLAG || word.split_once('=').is_some_and(|(name, _)| OPTIONS.contains(&name)) {
            bridge_args.push(word);
        } else {
            agent_args.push(word);
        }
    }
    agent_args.extend(own);
    let trailing = TrailingOptions::try_parse_from(bridge_args)?.options;
    let options = BridgeOptions {
        host: trailing.host.or(leading.host),
        port: trailing.port.or(leading.port),
        cwd: trailing.cwd.or(leading.cwd),
        env: leading.env.into_iter().chain(trailing.env).collect(),
        log: trailing.log.or(leading.log),
        log_file: trailing.log_file.or(leading.log_file),
        token_file: trailing.token_file.or(leading.token_file),
        no_token: trailing.no_token || leading.no_token,
        path: trailing.path.or(leading.path),
        allow_origin: leading.allow_origin.into_iter().chain(trailing.allow_origin).collect(),
    };
    Ok((options, agent_args))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;
    use crate::cli::{Cli, CliCommand, LazyArgs};

    #[track_caller]
    fn check(line: &str, expected: &Expect) {
        let words = ["crow-cli", "acp-bridge"].into_iter().chain(line.split_whitespace());
        let sorted = Cli::try_parse_from(words).and_then(|cli| {
            let Some(CliCommand::AcpBridge(LazyArgs(args))) = cli.command else {
                panic!("{:?}", cli.command)
            };
            split_arguments(args)
        });
        let output = match sorted {
            Ok((options, words)) => {
                let BridgeOptions { host, port, cwd, log_file, token_file, .. } = options;
                format!("{host:?} {port:?} {:?} {}", [cwd, log_file, token_file], words.join(" "))
            }
            Err(error) => error.to_string().lines().next().unwrap_or_default().to_owned(),
        };
        expected.assert_eq(&output.replace("None", "-"));
    }

    #[test]
    fn options_may_be_anywhere() {
        check("uv run something acp --port 8766", &expect!["- Some(8766) [-, -, -] uv run something acp"]);
        check("--port 8766 uv run something acp", &expect!["- Some(8766) [-, -, -] uv run something acp"]);
        check(
            "--port 1 agent --port=2 --cwd /a -x --log-file l --token-file t --host h acp",
            &expect![[r#"Some("h") Some(2) [Some("/a"), Some("l"), Some("t")] agent -x acp"#]],
        );
    }

    #[test]
    fn options_of_the_python_bridge_are_accepted() {
        let line = "acp-bridge uv run agent --port 8766 --log debug --env A=1 --env B=x=y --no-token --path * \
                    --allow-origin http://localhost:3000";
        let cli = Cli::try_parse_from(["crow-cli"].into_iter().chain(line.split_whitespace())).unwrap();
        let Some(CliCommand::AcpBridge(LazyArgs(args))) = cli.command else { panic!("{:?}", cli.command) };
        let (options, words) = split_arguments(args).unwrap();
        assert_eq!(words.join(" "), "uv run agent");
        assert_eq!((options.port, options.log), (Some(8766), Some(tracing::Level::DEBUG)));
        assert_eq!(options.env, [("A".into(), "1".into()), ("B".into(), "x=y".into())]);
        assert_eq!((options.no_token, options.path.as_deref()), (true, Some("*")));
        assert_eq!(options.allow_origin, ["http://localhost:3000"]);
    }

    #[test]
    fn other_arguments_are_passed_to_the_agent() {
        check(
            "agent -d x -v --help --version --model=m -- --port 1",
            &expect!["- - [-, -, -] agent -d x -v --help --version --model=m --port 1"],
        );
        check(
            "--port 1 -- agent --port 2 -- --port 3",
            &expect!["- Some(1) [-, -, -] agent --port 2 -- --port 3"],
        );
        check("-- --port", &expect!["- - [-, -, -] --port"]);
        check("agent -- -- x", &expect!["- - [-, -, -] agent -- x"]);
    }

    #[test]
    fn invalid_options_are_rejected() {
        check("", &expect!["error: the following required arguments were not provided:"]);
        check(
            "agent --log bridge.log",
            &expect![
                "error: invalid value 'bridge.log' for '--log <LEVEL>': expected debug, info, warning or error; the log file is set with --log-file"
            ],
        );
        check("--port", &expect!["error: a value is required for '--port <PORT>' but none was supplied"]);
        check(
            "--port x agent",
            &expect!["error: invalid value 'x' for '--port <PORT>': invalid digit found in string"],
        );
        check(
            "agent --port x",
            &expect!["error: invalid value 'x' for '--port <PORT>': invalid digit found in string"],
        );
        check(
            "agent --port",
            &expect!["error: a value is required for '--port <PORT>' but none was supplied"],
        );
        check(
            "agent --port 1 --port 2",
            &expect!["error: the argument '--port <PORT>' cannot be used multiple times"],
        );
    }
}
