//! Web settings from the environment.

use std::path::Path;

use crow_tools::WebConfig;

use super::Environment;

/// The variable with the address of SearXNG.
pub(crate) const SEARCH_VARIABLE: &str = "SEARXNG_URL";

/// The variable of earlier versions with its port on this machine.
const SEARCH_PORT_VARIABLE: &str = "SEARXNG_PORT";

/// The compose file of the user's own SearXNG, in the configuration directory.
pub(crate) const SEARCH_COMPOSE: &str = "searxng/compose.yaml";

/// Proxy variables; the lower-case names are the older ones.
const PROXY_VARIABLES: [&str; 3] = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"];

/// Reads the web settings; `merged_env` includes `.env`, from which no proxy is taken.
pub(super) fn web_access(dir: &Path, merged_env: &Environment, env: &Environment) -> WebConfig {
    let mut config = WebConfig { search_compose: dir.join(SEARCH_COMPOSE), ..WebConfig::default() };
    let url = merged_env.get(SEARCH_VARIABLE).map(|url| url.trim()).filter(|url| !url.is_empty());
    let is_configured = url.is_some();
    if let Some(url) = url {
        url.clone_into(&mut config.search_url);
    }
    let port = merged_env.get(SEARCH_PORT_VARIABLE).and_then(|port| port.trim().parse::<u16>().ok());
    if let (false, Some(port)) = (is_configured, port) {
        config.search_url = format!("http://localhost:{port}");
    }
    let is_proxy = |name: &str| PROXY_VARIABLES.contains(&name.to_ascii_uppercase().as_str());
    config.proxies = env.iter().filter(|(name, _)| is_proxy(name)).map(|(_, proxy)| proxy.clone()).collect();
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> Environment {
        pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    #[test]
    fn search_and_proxies_are_read_from_the_environment() {
        let merged_env =
            environment(&[("SEARXNG_URL", " http://search.lan/ "), ("all_proxy", "from-file:1")]);
        let env =
            environment(&[("https_proxy", "proxy:3128"), ("HTTP_PROXY", "http://p:1"), ("NO_PROXY", "x")]);
        let config = web_access(Path::new("/c"), &merged_env, &env);
        assert_eq!(config.search_url, "http://search.lan/");
        assert_eq!(config.search_compose, Path::new("/c/searxng/compose.yaml"));
        assert_eq!(config.proxies, ["http://p:1", "proxy:3128"]);
    }

    #[test]
    fn empty_address_is_ignored() {
        let none = web_access(Path::new("/c"), &environment(&[("SEARXNG_URL", " ")]), &Environment::new());
        assert_eq!(none.search_url, "http://localhost:2946");
    }

    #[test]
    fn port_alone_is_on_this_machine() {
        let url = |pairs: &[(&str, &str)]| {
            web_access(Path::new("/c"), &environment(pairs), &Environment::new()).search_url
        };
        assert_eq!(url(&[("SEARXNG_PORT", "8085")]), "http://localhost:8085");
        assert_eq!(url(&[("SEARXNG_PORT", "8085"), ("SEARXNG_URL", "http://s")]), "http://s");
        assert_eq!(url(&[("SEARXNG_PORT", "none")]), "http://localhost:2946");
    }
}
