//! `speckit`: the location of features, and whether tasks run in parallel.

use crow_speckit::{SpeckitVariables, SpecsLink, SpecsRoot};
use crow_workflow::{ParallelMode, PublicEnvironment, WorkflowConfig};

use super::{
    super::{ConfigError, Environment, file::ConfigField, known_keys},
    loader::ConfigLoader,
};

impl ConfigLoader<'_> {
    pub(super) fn read_speckit(&mut self, field: &ConfigField) -> Result<WorkflowConfig, ConfigError> {
        let mut workflow = WorkflowConfig::default();
        for field in
            self.read_map(&field.key, &field.node, "a map with specs_root, specs_link and parallel")?
        {
            match field.key.as_str() {
                "specs_root" => {
                    let Some(text) = self.read_text("speckit.specs_root", &field.node)? else { continue };
                    workflow.specs_root = SpecsRoot::parse(&text)
                        .map_err(|error| self.error_at(field.line, format!("speckit.specs_root: {error}")))?;
                }
                "specs_link" => {
                    let Some(text) = self.read_text("speckit.specs_link", &field.node)? else { continue };
                    workflow.specs_link = match text.as_str() {
                        "auto" => SpecsLink::Auto,
                        "off" => SpecsLink::Off,
                        _ => {
                            let expected = "speckit.specs_link: expected auto or off";
                            return Err(self.error_at(field.line, expected.to_owned()));
                        }
                    };
                }
                "parallel" => {
                    let Some(text) = self.read_text("speckit.parallel", &field.node)? else { continue };
                    let expected = "speckit.parallel: expected ask, always or never";
                    workflow.parallel = ParallelMode::parse(&text)
                        .ok_or_else(|| self.error_at(field.line, expected.to_owned()))?;
                }
                _ => self.check_known("speckit", field, known_keys::SPECKIT),
            }
        }
        Ok(workflow)
    }
}

/// Adds the environment without its secrets.
pub(super) fn add_environment(
    workflow: WorkflowConfig,
    env: &Environment,
    is_secret: impl Fn(&str) -> bool,
) -> WorkflowConfig {
    let public = env.iter().filter(|(name, _)| !is_secret(name));
    let public: Environment = public.map(|(name, value)| (name.clone(), value.clone())).collect();
    let variables = SpeckitVariables::from_env(|name| env.get(name).cloned());
    WorkflowConfig { variables, environment: PublicEnvironment::new(public), ..workflow }
}
