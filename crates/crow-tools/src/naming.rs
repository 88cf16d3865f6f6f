//! Names that every provider takes, and no two alike.

use std::{collections::HashSet, path::PathBuf, sync::Arc};

use crow_acp::Abilities;
use crow_core::{Facets, ToolSpec};
use serde_json::{Map, Value};

use crate::{Previewing, Running, Tool, ToolCx, Workspace};

/// Providers refuse longer ones.
const NAME_CHARS_MAX: usize = 64;

/// Finds a name for a tool: its own, or the server's before it, or that with a number.
pub(crate) fn free_name(tool: &dyn Tool, taken: &HashSet<String>) -> String {
    let own = fit(&tool.spec().name);
    let prefixed = || tool.server().map(|server| fit(&format!("{server}_{own}")));
    let numbered = |base: String| (2..).map(move |number| with_number(&base, number));
    let is_free = |name: &String| !taken.contains(name);
    let plain = Some(own.clone()).filter(is_free).or_else(|| prefixed().filter(is_free));
    plain.or_else(|| numbered(prefixed().unwrap_or_else(|| own.clone())).find(is_free)).unwrap_or_default()
}

/// Keeps what providers take of a name.
fn fit(name: &str) -> String {
    let kept = name.chars().take(NAME_CHARS_MAX);
    let fit: String = kept.map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    if fit.is_empty() { "tool".to_owned() } else { fit }
}

fn with_number(base: &str, number: u32) -> String {
    let ending = format!("_{number}");
    let kept: String = base.chars().take(NAME_CHARS_MAX - ending.len()).collect();
    kept + &ending
}

/// A tool under another name.
pub(crate) struct Renamed {
    tool: Arc<dyn Tool>,
    spec: ToolSpec,
}

impl Renamed {
    pub(crate) fn new(tool: Arc<dyn Tool>, name: String) -> Self {
        let spec = ToolSpec { name, ..tool.spec().clone() };
        Self { tool, spec }
    }
}

impl Tool for Renamed {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn server(&self) -> Option<&str> {
        self.tool.server()
    }

    fn name_there(&self) -> Option<&str> {
        self.tool.name_there()
    }

    fn only_reads(&self) -> bool {
        self.tool.only_reads()
    }

    fn facets(&self, arguments: &Map<String, Value>, workspace: &Workspace) -> Facets {
        self.tool.facets(arguments, workspace)
    }

    fn prints_live(
        &self,
        arguments: &Map<String, Value>,
        workspace: &Workspace,
        client: Abilities,
    ) -> Option<PathBuf> {
        self.tool.prints_live(arguments, workspace, client)
    }

    fn runs_in_client(
        &self,
        arguments: &Map<String, Value>,
        workspace: &Workspace,
        client: Abilities,
    ) -> bool {
        self.tool.runs_in_client(arguments, workspace, client)
    }

    fn preview<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Previewing<'a> {
        self.tool.preview(arguments, cx)
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, cx: ToolCx<'a>) -> Running<'a> {
        self.tool.run(arguments, cx)
    }
}

#[cfg(test)]
mod tests {
    use crow_core::{Outcome, ToolKind, Touch};
    use expect_test::expect;

    use super::*;
    use crate::{Equipment, Tools};

    /// A tool of the server `my box`.
    struct Named(ToolSpec);

    impl Tool for Named {
        fn spec(&self) -> &ToolSpec {
            &self.0
        }

        fn server(&self) -> Option<&str> {
            Some("my box")
        }

        fn facets(&self, _: &Map<String, Value>, _: &Workspace) -> Facets {
            let title = self.0.name.clone();
            Facets { title, kind: ToolKind::Other, locations: Vec::new(), touch: Touch::Nothing }
        }

        fn run<'a>(&'a self, _: &'a Map<String, Value>, _: ToolCx<'a>) -> Running<'a> {
            Box::pin(async { Outcome::done("") })
        }
    }

    #[test]
    fn fit_and_free() {
        let long = "n".repeat(80);
        let names =
            ["git status", "git.status", "git/status", "read", "read", "", "été", &long, &long, &long, &long];
        let named = |name: &&str| {
            let (name, description) = (name.to_string(), String::new());
            Arc::new(Named(ToolSpec { name, description, parameters: Value::Null })) as Arc<dyn Tool>
        };
        let builtin = Tools::builtin(Equipment::default());
        let n_builtin = builtin.specs().len();
        let tools = builtin.with(names.iter().map(named).collect());
        let lines = tools
            .specs()
            .into_iter()
            .skip(n_builtin)
            .map(|spec| format!("{} {}\n", spec.name.len(), spec.name));
        expect![[r#"
            10 git_status
            17 my_box_git_status
            19 my_box_git_status_2
            11 my_box_read
            13 my_box_read_2
            4 tool
            3 _t_
            64 nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
            64 my_box_nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn
            64 my_box_nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn_2
            64 my_box_nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn_3
        "#]]
        .assert_eq(&lines.collect::<String>());
    }
}
