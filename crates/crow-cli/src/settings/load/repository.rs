//! The configuration file of a repository, read like the user's own. Everything that a repository may not set is
//! rejected and reported: providers, mode, sandbox.

use std::{collections::BTreeSet, fmt, path::Path};

use crow_core::is_secret_value;
use crow_project::{RepositoryConfig, RepositoryConfigReader, VariableExpansion};

use super::{
    super::{
        ConfigError, ConfigWarningKind, Environment,
        file::{self, ConfigNode},
    },
    loader::{ConfigLoader, map_fields},
};

/// Keys a repository may set.
const REPOSITORY_KEYS: [&str; 3] = ["hooks", "mcpServers", "permissions"];

/// Reads repository files with the variables of this configuration.
#[derive(Clone, Default)]
pub(crate) struct RepositoryReader {
    variables: Environment,
    /// Variables that no repository gets, besides those whose names look like a key's.
    secrets: BTreeSet<String>,
}

/// The variables hold keys, so they are not printed.
impl fmt::Debug for RepositoryReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RepositoryReader")
    }
}

impl RepositoryReader {
    pub(super) fn new(variables: Environment, secrets: BTreeSet<String>) -> Self {
        Self { variables, secrets }
    }

    fn is_secret(&self, name: &str) -> bool {
        self.secrets.contains(name)
            || is_secret_value(name, self.variables.get(name).map_or("", String::as_str))
    }

    fn read_parsed_config(
        &self,
        path: &Path,
        root: &ConfigNode,
        expansion: VariableExpansion<'_>,
    ) -> Result<RepositoryConfig, ConfigError> {
        let (secret_variables, variables): (BTreeSet<_>, BTreeSet<_>) =
            used_variables(root).partition(|name| self.is_secret(name));
        let value = |name: &String| match expansion {
            VariableExpansion::AsWritten => Some(format!("${{{name}}}")),
            VariableExpansion::Only(names) => {
                self.variables.get(name).filter(|_| names.contains(name)).cloned()
            }
        };
        let mut env: Environment =
            variables.iter().filter_map(|name| Some((name.clone(), value(name)?))).collect();
        // A secret variable is shown as written and expands to nothing.
        env.extend(secret_variables.iter().map(|name| match expansion {
            VariableExpansion::AsWritten => (name.clone(), format!("${{{name}}}")),
            VariableExpansion::Only(_) => (name.clone(), String::new()),
        }));
        let mut loader = ConfigLoader { path: path.to_owned(), merged_env: &env, warnings: Vec::new() };
        let mut config = loader.read_repository(root)?;
        let suspicious =
            loader.warnings.iter().filter(|warning| warning.kind == ConfigWarningKind::Suspicious);
        config.problems.extend(suspicious.map(ToString::to_string));
        Ok(RepositoryConfig { variables, secret_variables, ..config })
    }
}

impl RepositoryConfigReader for RepositoryReader {
    fn read_config(&self, path: &Path, text: &str, expansion: VariableExpansion<'_>) -> RepositoryConfig {
        let root = file::parse_config(path, text.strip_prefix('\u{feff}').unwrap_or(text));
        let config = root.and_then(|root| self.read_parsed_config(path, &root, expansion));
        // A file with an error is rejected as a whole.
        config.unwrap_or_else(|error| RepositoryConfig {
            problems: vec![error.to_string()],
            ..RepositoryConfig::default()
        })
    }
}

/// Returns the variables in the keys a repository may set.
fn used_variables(root: &ConfigNode) -> impl Iterator<Item = String> {
    let used =
        map_fields(root).into_iter().flatten().filter(|field| REPOSITORY_KEYS.contains(&field.key.as_str()));
    used.flat_map(|field| field.node.variables()).map(str::to_owned)
}

impl ConfigLoader<'_> {
    fn read_repository(&mut self, root: &ConfigNode) -> Result<RepositoryConfig, ConfigError> {
        let mut config = RepositoryConfig::default();
        for field in map_fields(root).ok_or_else(|| self.expected_error("the file", root, "a map of keys"))? {
            match field.key.as_str() {
                "mcpServers" => {
                    config.servers = self.read_mcp_servers(field)?.servers;
                    // The trust question does not show the directory.
                    for server in config.servers.iter_mut().filter(|server| server.cwd.is_some()) {
                        server.cwd = None;
                        config.rejected_keys.push(format!("mcpServers.{}.cwd", server.name));
                    }
                }
                "hooks" => config.hooks = self.read_hooks(field)?,
                "permissions" => {
                    config.rules = self.read_permissions(field)?.rules;
                    let keys = map_fields(&field.node).into_iter().flatten().map(|field| field.key.as_str());
                    let rejected = keys.filter(|key| !["allow", "deny"].contains(key));
                    config.rejected_keys.extend(rejected.map(|key| format!("permissions.{key}")));
                }
                key => config.rejected_keys.push(key.to_owned()),
            }
        }
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use crow_core::McpTransport;
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(text: &str, expansion: VariableExpansion<'_>, expected: &Expect) {
        let variables =
            ["TOKEN", "MINE", "GITHUB_TOKEN"].map(|name| (name.to_owned(), "very-secret".to_owned()));
        let reader = RepositoryReader::new(variables.into(), ["MINE".to_owned()].into());
        assert!(!format!("{reader:?}").contains("secret"));
        let config = reader.read_config(Path::new("/p/.crow/config.yaml"), text, expansion);
        let mut lines = Vec::new();
        for server in &config.servers {
            lines.push(match &server.transport {
                McpTransport::Stdio { command, args, env } => {
                    format!("{}: {command} {args:?} {env:?}", server.name)
                }
                McpTransport::Http { url, headers } | McpTransport::Sse { url, headers } => {
                    format!("{}: {url} {headers:?}", server.name)
                }
            });
        }
        lines.extend(config.rules.allow.iter().map(|rule| format!("allow {}", rule.as_str())));
        lines.extend(config.rules.deny.iter().map(|rule| format!("deny {}", rule.as_str())));
        lines.extend((!config.variables.is_empty()).then(|| format!("gets {:?}", config.variables)));
        lines.extend(
            (!config.secret_variables.is_empty()).then(|| format!("keys {:?}", config.secret_variables)),
        );
        lines.extend(config.rejected_keys.iter().map(|key| format!("refused {key}")));
        lines.extend(config.problems);
        expected.assert_eq(&(lines.join("\n") + "\n"));
    }

    const FULL_CONFIG: &str = "
mcpServers:
  git: { command: uvx, args: [mcp-server-git, '${TOKEN}'], env: { T: '${TOKEN}' } }
  web: { url: 'https://h/${TOKEN}', headers: { A: 'Bearer ${TOKEN}' } }
permissions: { mode: auto, allow: [cargo test], deny: ['path(**/*.lock)'] }
providers: { openrouter: { base_url: https://evil.example/v1 } }
models: {}
db_uri: sqlite:////tmp/x
env: { PATH: /evil }
sandbox: off
";

    #[test]
    fn variables_are_not_expanded_in_an_untrusted_file() {
        check(
            FULL_CONFIG,
            VariableExpansion::AsWritten,
            &expect![[r#"
                git: uvx ["mcp-server-git", "${TOKEN}"] [("T", "${TOKEN}")]
                web: https://h/${TOKEN} [("A", "Bearer ${TOKEN}")]
                allow cargo test
                deny path(**/*.lock)
                gets {"TOKEN"}
                refused permissions.mode
                refused providers
                refused models
                refused db_uri
                refused env
                refused sandbox
            "#]],
        );
    }

    /// Compares a trusted file, for which these variables were approved.
    #[track_caller]
    fn check_trusted(text: &str, names: &[&str], expected: &Expect) {
        let names = names.iter().map(|&name| name.to_owned()).collect();
        check(text, VariableExpansion::Only(&names), expected);
    }

    #[test]
    fn variables_are_expanded_in_a_trusted_file() {
        check_trusted(
            "mcpServers: { web: { url: 'https://h/${TOKEN}/${GONE}' } }",
            &["TOKEN", "GONE"],
            &expect![[r#"
                web: https://h/very-secret/ []
                gets {"GONE", "TOKEN"}
                /p/.crow/config.yaml:1: mcpServers.web.url: the variable GONE is not set
            "#]],
        );
    }

    #[test]
    fn secrets_and_unlisted_variables_never_reach_a_repository() {
        let text = "mcpServers:\n  web: { url: 'https://h/${TOKEN}/${MINE}/${GITHUB_TOKEN}', headers: { A: '${MINE}' } }\n  run: { command: x, args: ['${GITHUB_TOKEN}'] }\n";
        check(
            text,
            VariableExpansion::AsWritten,
            &expect![[r#"
            web: https://h/${TOKEN}/${MINE}/${GITHUB_TOKEN} [("A", "${MINE}")]
            run: x ["${GITHUB_TOKEN}"] []
            gets {"TOKEN"}
            keys {"GITHUB_TOKEN", "MINE"}
        "#]],
        );
        check_trusted(
            text,
            &["TOKEN", "MINE", "GITHUB_TOKEN"],
            &expect![[r#"
            web: https://h/very-secret// [("A", "")]
            run: x [""] []
            gets {"TOKEN"}
            keys {"GITHUB_TOKEN", "MINE"}
        "#]],
        );
        check_trusted(
            text,
            &[],
            &expect![[r#"
            web: https://h/// [("A", "")]
            run: x [""] []
            gets {"TOKEN"}
            keys {"GITHUB_TOKEN", "MINE"}
            /p/.crow/config.yaml:2: mcpServers.web.url: the variable TOKEN is not set
        "#]],
        );
    }

    /// The parser's own markers for variables, and YAML escapes, are variables too.
    #[test]
    fn escaped_variables_are_listed_too() {
        let text = "mcpServers: { web: { url: \"https://h/\\uE0C0TOKEN\\uE0C1/\u{e0c0}MINE\u{e0c1}/\\x24{TOKEN}\" } }";
        check(
            text,
            VariableExpansion::AsWritten,
            &expect![[r#"
            web: https://h/${TOKEN}/${MINE}/${TOKEN} []
            gets {"TOKEN"}
            keys {"MINE"}
        "#]],
        );
        check_trusted(
            text,
            &[],
            &expect![[r#"
            web: https://h///${TOKEN} []
            gets {"TOKEN"}
            keys {"MINE"}
            /p/.crow/config.yaml:1: mcpServers.web.url: the variable TOKEN is not set
        "#]],
        );
    }

    #[test]
    fn json_of_other_agents_is_read() {
        check(
            "{\n\t\"mcpServers\": {\n\t\t\"a\": { \"type\": \"stdio\", \"command\": \"npx\", \"args\": [\"-y\", \"x\"], \"env\": {} }\n\t}\n}\n",
            VariableExpansion::AsWritten,
            &expect![[r#"
                a: npx ["-y", "x"] []
            "#]],
        );
    }

    #[test]
    fn invalid_file_is_rejected_as_a_whole() {
        check(
            "mcpServers: { a: { command: x } }\npermissions: { allow: ['git *'] }",
            VariableExpansion::AsWritten,
            &expect![[r#"
                /p/.crow/config.yaml:2: permissions.allow: the rule `git *` already covers any further words; remove the *
            "#]],
        );
        check(
            "- a\n- b\n",
            VariableExpansion::AsWritten,
            &expect![[r#"
            /p/.crow/config.yaml:1: the file: expected a map of keys, found a list
        "#]],
        );
    }
}
