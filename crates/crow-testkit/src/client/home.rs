//! A temporary home directory for an agent.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::PathBuf;

/// A temporary home directory with configuration and project.
#[derive(Debug)]
pub struct TestHome {
    directory: tempfile::TempDir,
}

impl TestHome {
    /// Creates a home whose only model is at `base_url`.
    pub fn new(base_url: &str) -> Self {
        let home = Self { directory: tempfile::tempdir().expect("a folder can be made") };
        std::fs::create_dir_all(home.project()).expect("a folder can be made");
        home.configure(&format!(
            "providers:\n  fake: {{ base_url: {base_url} }}\nmodels:\n  scripted: {{ provider: fake, model: scripted, context_window: 32000, tools: full }}\nmax_retries_per_step: 0\n"
        ));
        home
    }

    /// Writes the configuration.
    pub fn configure(&self, yaml: &str) {
        let directory = self.home().join(".crow");
        std::fs::create_dir_all(&directory).expect("a folder can be made");
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(&directory, permissions).expect("the folder can be made private");
        std::fs::write(directory.join("config.yaml"), yaml).expect("the configuration can be written");
    }

    /// Sets the model API of the provider.
    pub fn set_model_api(&self, api: &str) {
        let text = self.config_text();
        self.configure(&text.replacen("{ base_url:", &format!("{{ api: {api}, base_url:"), 1));
    }

    /// Adds a line to the configuration.
    pub fn add_config(&self, yaml: &str) {
        let file = self.home().join(".crow/config.yaml");
        let text = self.config_text();
        std::fs::write(&file, format!("{text}{yaml}\n")).expect("the configuration can be written");
    }

    /// Adds a field to the model's configuration.
    pub fn add_model_config(&self, yaml: &str) {
        let file = self.home().join(".crow/config.yaml");
        let text = self.config_text();
        let fields = format!("model: scripted, {yaml}");
        let text = text.replacen("model: scripted", &fields, 1);
        std::fs::write(&file, text).expect("the configuration can be written");
    }

    /// Returns the text of the configuration.
    pub fn config_text(&self) -> String {
        std::fs::read_to_string(self.home().join(".crow/config.yaml")).expect("the configuration can be read")
    }

    /// Returns the canonical path of the home directory.
    pub fn home(&self) -> PathBuf {
        std::fs::canonicalize(self.directory.path()).expect("the folder is there")
    }

    /// Returns the directory in which the agent works.
    pub fn project(&self) -> PathBuf {
        self.home().join("project")
    }

    /// Writes a file of the project.
    pub fn write_file(&self, name: &str, text: &str) {
        std::fs::write(self.project().join(name), text).expect("the file can be written");
    }
}
