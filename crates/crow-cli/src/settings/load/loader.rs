//! Reads values of the configuration file and collects warnings. Knows no section.

use std::{
    path::{Path, PathBuf},
    str::FromStr,
};

use super::super::environment::Environment;
use super::super::error::{ConfigError, ConfigWarning, ConfigWarningKind};
use super::super::file::{ConfigField, ConfigNode, ConfigScalar, ConfigValue};
use super::super::known_keys::{self, ConfigKey};

/// Expected type in messages about a map of names.
pub(super) const NAMED_MAPS: &str = "a map from names to settings";

/// The configuration file while it is loaded.
pub(super) struct ConfigLoader<'a> {
    pub(super) path: PathBuf,
    pub(super) merged_env: &'a Environment,
    pub(super) warnings: Vec<ConfigWarning>,
}

impl ConfigLoader<'_> {
    /// Expands a path in the configuration: `~/` is the home directory, relative paths start in the configuration
    /// directory.
    pub(super) fn expand_path(&self, dir: &Path, path: &str) -> PathBuf {
        match path.strip_prefix("~/").zip(self.merged_env.get("HOME")) {
            Some((below, home)) => Path::new(home).join(below),
            None => dir.join(path),
        }
    }

    /// Warns of an unknown key, and records one that only earlier versions used.
    pub(super) fn check_known(&mut self, key_path: &str, field: &ConfigField, known: &[ConfigKey]) {
        if known.iter().any(|key| key.name == field.key) {
            return;
        }
        let key = if key_path.is_empty() { field.key.clone() } else { format!("{key_path}.{}", field.key) };
        if known_keys::is_retired(key_path, &field.key) {
            let path = self.path.clone();
            self.warnings.push(ConfigWarning {
                path,
                line: field.line,
                text: key,
                kind: ConfigWarningKind::Retired,
            });
            return;
        }
        let text = match known_keys::nearest_name(&field.key, known.iter().map(|key| key.name)) {
            Some(nearest) => format!("unknown key {key}; did you mean {nearest}?"),
            None => format!("unknown key {key}"),
        };
        self.warn_at(field.line, text);
    }

    pub(super) fn read_map<'n>(
        &self,
        key_path: &str,
        node: &'n ConfigNode,
        expected: &str,
    ) -> Result<&'n [ConfigField], ConfigError> {
        map_fields(node).ok_or_else(|| self.expected_error(key_path, node, expected))
    }

    pub(super) fn read_scalar<'n>(
        &self,
        key_path: &str,
        node: &'n ConfigNode,
    ) -> Result<Option<&'n ConfigScalar>, ConfigError> {
        match &node.value {
            ConfigValue::Null => Ok(None),
            ConfigValue::Scalar(scalar) => Ok(Some(scalar)),
            ConfigValue::List(_) | ConfigValue::Map(_) => {
                Err(self.expected_error(key_path, node, "a string"))
            }
        }
    }

    pub(super) fn read_text(
        &mut self,
        key_path: &str,
        node: &ConfigNode,
    ) -> Result<Option<String>, ConfigError> {
        let Some(scalar) = self.read_scalar(key_path, node)? else { return Ok(None) };
        let expanded = scalar.expand(self.merged_env);
        for name in expanded.unset {
            self.warn_at(node.line, format!("{key_path}: the variable {name} is not set"));
        }
        Ok(Some(expanded.text).filter(|text| !text.is_empty()))
    }

    pub(super) fn read_number<T: FromStr>(
        &mut self,
        key_path: &str,
        node: &ConfigNode,
        expected: &str,
    ) -> Result<Option<T>, ConfigError> {
        let text = match &node.value {
            ConfigValue::List(_) | ConfigValue::Map(_) => {
                return Err(self.expected_error(key_path, node, expected));
            }
            ConfigValue::Scalar(scalar) => match scalar.canonical_text() {
                Some(text) => Some(text),
                None => self.read_text(key_path, node)?,
            },
            ConfigValue::Null => None,
        };
        let Some(text) = text else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.expected_error(key_path, node, expected))
    }

    pub(super) fn read_count<T: FromStr>(
        &mut self,
        key_path: &str,
        node: &ConfigNode,
    ) -> Result<Option<T>, ConfigError> {
        self.read_number(key_path, node, "a whole number")
    }

    pub(super) fn read_flag(
        &mut self,
        key_path: &str,
        node: &ConfigNode,
    ) -> Result<Option<bool>, ConfigError> {
        self.read_number(key_path, node, "true or false")
    }

    pub(super) fn read_positive<T: FromStr + Default + PartialEq>(
        &mut self,
        key_path: &str,
        node: &ConfigNode,
    ) -> Result<Option<T>, ConfigError> {
        let expected = "a positive whole number";
        let count = self.read_number(key_path, node, expected)?;
        if count == Some(T::default()) {
            Err(self.expected_error(key_path, node, expected))
        } else {
            Ok(count)
        }
    }

    pub(super) fn expected_error(&self, key_path: &str, node: &ConfigNode, expected: &str) -> ConfigError {
        self.error_at(node.line, format!("{key_path}: expected {expected}, found {}", node.value.kind_name()))
    }

    pub(super) fn error_at(&self, line: u64, problem: String) -> ConfigError {
        ConfigError::Invalid { path: self.path.clone(), line, problem }
    }

    pub(super) fn warn_at(&mut self, line: u64, text: String) {
        self.warnings.push(ConfigWarning {
            path: self.path.clone(),
            line,
            text,
            kind: ConfigWarningKind::Suspicious,
        });
    }
}

/// Returns the fields of a map; an empty value is an empty map.
pub(super) fn map_fields(node: &ConfigNode) -> Option<&[ConfigField]> {
    match &node.value {
        ConfigValue::Map(fields) => Some(fields),
        ConfigValue::Null => Some(&[]),
        ConfigValue::Scalar(_) | ConfigValue::List(_) => None,
    }
}
