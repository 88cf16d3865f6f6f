//! `crow-cli speckit`: the deterministic part of Spec Kit for scripts, with the keys that Spec Kit's own scripts print.
//! Uses no model and knows no session.

use std::io::{self, Write};
use std::path::Path;

use crow_speckit::{
    CreatedFeature, Feature, FeatureNumbering, FeatureOrigin, FeaturePrerequisite, FeatureSelector,
    NewFeature, PageTemplate, SpeckitError, SpeckitProject, check_feature_prerequisites, compose_page,
    create_feature, find_existing_feature, init_project, list_docs, page_layers, parse_number,
    preview_feature, resolve_feature, resume_feature, setup_plan, setup_tasks, write_pointer,
};
use crow_workflow::WorkflowConfig;
use serde_json::{Value, json};

use crate::{
    cli::{NewFeatureArgs, PrereqArgs, SpeckitArgs, SpeckitSubcommand},
    failure::{CliError, CliExitCode},
    settings::Settings,
    table,
};

/// Runs one subcommand. Notes beside the result go to stderr.
pub(crate) fn run(
    args: &SpeckitArgs,
    settings: &Settings,
    cwd: &Path,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let stderr = &mut io::stderr();
    let workflow = &settings.workflow;
    let variables = &workflow.variables;
    let cwd = args.dir.as_ref().map_or_else(|| cwd.to_owned(), |dir| cwd.join(dir));
    let cwd = crate::require_existing_dir(&cwd).map(|_| cwd)?;
    let found = SpeckitProject::find_project(&cwd, variables.init_dir.as_deref())?;
    let prompts_dir = settings.prompts_dir.join("speckit");
    let is_json = args.json;
    if let SpeckitSubcommand::NewFeature(new) = &args.command {
        let project = match found {
            Some(project) => project,
            None => SpeckitProject::from_root(cwd.canonicalize().map_err(|error| dir_error(&cwd, &error))?),
        };
        let step = SpeckitStep { project, prompts_dir: &prompts_dir, workflow, feature: None };
        return step.new_feature(new, is_json, out, stderr);
    }
    let project = found.ok_or_else(|| {
        let missing = format!("there is no .specify/ in {} or its parent directories", cwd.display());
        let hint =
            "create a project with `/speckit init`, or with its first feature: `crow-cli speckit new-feature`";
        CliError::new(CliExitCode::Failed, missing).with_hint(hint)
    })?;
    let step = SpeckitStep { project, prompts_dir: &prompts_dir, workflow, feature: args.feature.as_deref() };
    let document = match &args.command {
        SpeckitSubcommand::Paths => step.paths_json()?,
        SpeckitSubcommand::Prereq(prereq_args) => step.check_prerequisites(prereq_args)?,
        SpeckitSubcommand::SetupPlan => step.setup_plan(stderr)?,
        SpeckitSubcommand::SetupTasks => step.setup_tasks()?,
        SpeckitSubcommand::Tasks => return step.print_tasks(is_json, out),
        SpeckitSubcommand::ResolveTemplate { name } => {
            let page = step.load_page(name)?;
            if !is_json {
                return Ok(write!(out, "{}", page.text)?);
            }
            json!({"TEMPLATE_NAME": page.name, "TEMPLATE_CONTENT": page.text})
        }
        SpeckitSubcommand::NewFeature(_) => return Ok(()),
    };
    print_document(&document, is_json, out)
}

/// The context of every subcommand.
struct SpeckitStep<'a> {
    project: SpeckitProject,
    prompts_dir: &'a Path,
    workflow: &'a WorkflowConfig,
    feature: Option<&'a str>,
}

impl SpeckitStep<'_> {
    fn load_page(&self, name: &str) -> Result<PageTemplate, SpeckitError> {
        compose_page(&self.project, Some(self.prompts_dir), name)
    }

    fn feature_query(&self) -> FeatureSelector<'_> {
        FeatureSelector {
            typed: self.feature,
            session_dir: None,
            variables: &self.workflow.variables,
            specs_root: &self.workflow.specs_root,
        }
    }

    /// Finds the feature; one from the environment is stored for programs without that environment.
    fn find_feature(&self) -> Result<Feature, SpeckitError> {
        let (feature, origin) = resolve_feature(&self.project, self.feature_query())?;
        if origin == FeatureOrigin::Variable && !self.workflow.variables.no_persist {
            write_pointer(&self.project, &feature.dir)?;
        }
        Ok(feature)
    }

    /// Returns the feature's display name.
    fn feature_label(&self, feature: &Feature) -> String {
        self.workflow.variables.feature.clone().unwrap_or_else(|| feature.name.clone())
    }

    fn paths_json(&self) -> Result<Value, SpeckitError> {
        let (feature, _) = resolve_feature(&self.project, self.feature_query())?;
        Ok(json!({
            "REPO_ROOT": self.project.root(),
            "BRANCH": self.feature_label(&feature),
            "FEATURE_DIR": feature.dir,
            "FEATURE_SPEC": feature.spec_path(),
            "IMPL_PLAN": feature.plan_path(),
            "TASKS": feature.tasks_path(),
        }))
    }

    fn check_prerequisites(&self, args: &PrereqArgs) -> Result<Value, SpeckitError> {
        let feature = self.find_feature()?;
        let mut needs = vec![FeaturePrerequisite::PLAN];
        needs.extend(args.require_spec.then_some(FeaturePrerequisite::SPEC));
        needs.extend(args.require_tasks.then_some(FeaturePrerequisite::TASKS));
        check_feature_prerequisites(&self.project, &feature, &needs)?;
        let mut docs = list_docs(&feature);
        docs.extend((args.include_tasks && feature.tasks_path().is_file()).then_some("tasks.md"));
        let mut document = json!({"FEATURE_DIR": feature.dir, "AVAILABLE_DOCS": docs});
        if let Some(name) = &args.template {
            document["TEMPLATE_CONTENT"] = self.load_page(name)?.text.into();
        }
        Ok(document)
    }

    fn setup_plan(&self, stderr: &mut impl Write) -> Result<Value, CliError> {
        let feature = self.find_feature()?;
        let is_new = setup_plan(&self.project, &feature, &jiff::Zoned::now(), &|name| self.load_page(name))?;
        let plan = self.project.display_path(&feature.plan_path());
        print_note(
            stderr,
            &if is_new { format!("created {plan}") } else { format!("{plan} already exists") },
        );
        Ok(json!({
            "FEATURE_SPEC": feature.spec_path(),
            "IMPL_PLAN": feature.plan_path(),
            "FEATURE_DIR": feature.dir,
            "BRANCH": self.feature_label(&feature),
        }))
    }

    fn setup_tasks(&self) -> Result<Value, SpeckitError> {
        let feature = self.find_feature()?;
        let page = setup_tasks(&self.project, &feature, &|name| self.load_page(name))?;
        Ok(json!({
            "FEATURE_DIR": feature.dir,
            "AVAILABLE_DOCS": list_docs(&feature),
            "TASKS_TEMPLATE": self.template_path(&page.name)?,
            "TASKS_TEMPLATE_CONTENT": page.text,
        }))
    }

    /// Returns the path of a template's top layer; empty if it is built in.
    fn template_path(&self, name: &str) -> Result<String, SpeckitError> {
        let strongest = page_layers(&self.project, Some(self.prompts_dir), name)?.into_iter().next();
        let file = strongest.and_then(|layer| layer.file);
        Ok(file.map(|file| self.project.resolve_path(file).display().to_string()).unwrap_or_default())
    }

    fn print_tasks(&self, is_json: bool, out: &mut impl Write) -> Result<(), CliError> {
        let (feature, _) = resolve_feature(&self.project, self.feature_query())?;
        check_feature_prerequisites(&self.project, &feature, &[FeaturePrerequisite::TASKS])?;
        let list = feature.read_task_list()?;
        if is_json {
            let tasks = list.tasks.iter().map(|task| {
                let stories: Vec<String> = task.stories.iter().map(|story| format!("US{story}")).collect();
                json!({
                    "id": task.id.as_str(), "done": task.done, "parallel": task.parallel, "stories": stories,
                    "phase": list.phase_for(task).map(ToString::to_string), "text": task.text,
                })
            });
            return Ok(writeln!(
                out,
                "{}",
                table::json_line(&json!({ "tasks": tasks.collect::<Vec<_>>() }))
            )?);
        }
        let rows = list.tasks.iter().map(|task| {
            [if task.done { "x" } else { " " }.to_owned(), task.id.to_string(), task.text.clone()]
        });
        Ok(table::write_table(out, rows)?)
    }

    fn new_feature(
        &self,
        args: &NewFeatureArgs,
        is_json: bool,
        out: &mut impl Write,
        stderr: &mut impl Write,
    ) -> Result<(), CliError> {
        let numbering = match (&args.number, args.timestamp) {
            (number, true) => {
                if number.is_some() {
                    print_note(stderr, "the number is ignored because a timestamp is used");
                }
                FeatureNumbering::Timestamp
            }
            (Some(number), false) => FeatureNumbering::Prefer(parse_number(number)?),
            (None, false) => FeatureNumbering::Next,
        };
        let description = args.description.join(" ");
        let new = NewFeature {
            description: &description,
            short_name: args.short_name.as_deref(),
            numbering,
            dir: None,
            specs_root: &self.workflow.specs_root,
            specs_link: self.workflow.specs_link,
            now: &jiff::Zoned::now(),
        };
        let existing = match args.allow_existing_branch {
            true => find_existing_feature(&self.project, &new)?,
            false => None,
        };
        let created = match (args.dry_run, existing) {
            (true, Some(existing_feature)) => existing_feature,
            (true, None) => preview_feature(&self.project, &new)?,
            (false, existing_feature) => self.create_or_resume_feature(&new, existing_feature)?,
        };
        for text in &created.notes {
            print_note(stderr, text);
        }
        let mut document = json!({
            "BRANCH_NAME": created.feature.name,
            "SPEC_FILE": created.feature.spec_path(),
            "FEATURE_NUM": created.prefix,
        });
        if args.dry_run {
            document["DRY_RUN"] = true.into();
        }
        print_document(&document, is_json, out)
    }

    /// Creates a feature or completes an existing one, and makes it the project's current feature.
    fn create_or_resume_feature(
        &self,
        new: &NewFeature<'_>,
        existing_feature: Option<CreatedFeature>,
    ) -> Result<CreatedFeature, SpeckitError> {
        let pages = |name: &str| self.load_page(name);
        if !self.project.is_initialized() {
            init_project(&self.project, &pages)?;
        }
        let created = match existing_feature {
            Some(existing_feature) => {
                resume_feature(&self.project, &existing_feature.feature, new.description, new.now, &pages)?;
                existing_feature
            }
            None => create_feature(&self.project, new, &pages)?,
        };
        if !self.workflow.variables.no_persist {
            write_pointer(&self.project, &created.feature.dir)?;
        }
        Ok(created)
    }
}

/// Prints one JSON document, or one line per field.
fn print_document(document: &Value, is_json: bool, out: &mut impl Write) -> Result<(), CliError> {
    if is_json {
        return Ok(writeln!(out, "{}", table::json_line(document))?);
    }
    for (name, value) in document.as_object().into_iter().flatten() {
        match value {
            Value::String(text) if text.contains('\n') => {
                writeln!(out, "{name}:\n{}", table::sanitize_text(text))?;
            }
            Value::String(text) => writeln!(out, "{name}: {}", table::sanitize_line(text))?,
            Value::Array(names) => {
                let names = names.iter().filter_map(Value::as_str);
                writeln!(out, "{name}: {}", names.collect::<Vec<_>>().join(" "))?;
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                writeln!(out, "{name}: {value}")?;
            }
        }
    }
    Ok(())
}

fn print_note(stderr: &mut impl Write, text: &str) {
    // A closed stderr is not an error.
    let _ = writeln!(stderr, "note: {}", table::sanitize_line(text));
}

fn dir_error(dir: &Path, error: &io::Error) -> CliError {
    CliError::new(CliExitCode::Failed, format!("could not work in {}: {error}", dir.display()))
}

impl From<SpeckitError> for CliError {
    fn from(error: SpeckitError) -> Self {
        let exit = Self::new(CliExitCode::Failed, table::sanitize_line(&error.to_string()));
        match error.hint() {
            Some(hint) => exit.with_hint(hint),
            None => exit,
        }
    }
}
