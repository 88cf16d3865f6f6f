//! `speckit`: where features go, and whether tasks may be done side by side.

use crow_agent::{Parallel, Surrounding, WorkflowSettings};
use crow_speckit::{SpecsLink, SpecsRoot, Variables};

use super::{
    super::{ConfigError, Environment, file::Field, known},
    Loader,
};

impl Loader<'_> {
    /// Reads the whole key.
    pub(super) fn speckit(&mut self, field: &Field) -> Result<WorkflowSettings, ConfigError> {
        let mut workflow = WorkflowSettings::default();
        for field in self.map(&field.key, &field.node, "a map with specs_root, specs_link and parallel")? {
            match field.key.as_str() {
                "specs_root" => {
                    let Some(text) = self.text("speckit.specs_root", &field.node)? else { continue };
                    workflow.specs_root = SpecsRoot::parse(&text)
                        .map_err(|error| self.wrong(field.line, format!("speckit.specs_root: {error}")))?;
                }
                "specs_link" => {
                    let Some(text) = self.text("speckit.specs_link", &field.node)? else { continue };
                    workflow.specs_link = match text.as_str() {
                        "auto" => SpecsLink::Auto,
                        "off" => SpecsLink::Off,
                        _ => {
                            let expected = "speckit.specs_link: expected auto or off";
                            return Err(self.wrong(field.line, expected.to_owned()));
                        }
                    };
                }
                "parallel" => {
                    let Some(text) = self.text("speckit.parallel", &field.node)? else { continue };
                    let expected = "speckit.parallel: expected ask, always or never";
                    workflow.parallel =
                        Parallel::parse(&text).ok_or_else(|| self.wrong(field.line, expected.to_owned()))?;
                }
                _ => self.check_known("speckit", field, known::SPECKIT),
            }
        }
        Ok(workflow)
    }
}

/// Adds what the environment says, but for its secrets.
pub(super) fn surrounded(
    workflow: WorkflowSettings,
    env: &Environment,
    is_secret: impl Fn(&str) -> bool,
) -> WorkflowSettings {
    let open = env.iter().filter(|(name, _)| !is_secret(name));
    let open: Environment = open.map(|(name, value)| (name.clone(), value.clone())).collect();
    let variables = Variables::read(|name| env.get(name).cloned());
    WorkflowSettings { variables, surrounding: Surrounding::new(open), ..workflow }
}
