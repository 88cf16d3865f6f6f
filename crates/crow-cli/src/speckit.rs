//! `crow-cli speckit`: the deterministic half of Spec Kit for scripts, with the keys that Spec Kit's own scripts print. Asks
//! no model and knows no session.

use std::io::{self, Write};
use std::path::Path;

use crow_agent::WorkflowSettings;
use crow_speckit::{
    Created, Feature, Need, NewFeature, Numbering, Origin, Page, Project, SpeckitError, WhoAsks, check_needs,
    create, docs, existing, init, layers, page, parse_number, resolve, setup_plan, setup_tasks, take_up,
    would_create, write_pointer,
};
use serde_json::{Value, json};

use crate::{
    cli::{NewFeatureArgs, PrereqArgs, SpeckitArgs, SpeckitCommand},
    failure::{Code, Exit},
    settings::Settings,
    table,
};

/// Does one step. What the person should know beside the result goes to stderr.
pub(crate) fn run(
    args: &SpeckitArgs,
    settings: &Settings,
    cwd: &Path,
    out: &mut impl Write,
) -> Result<(), Exit> {
    let more = &mut io::stderr();
    let workflow = &settings.workflow;
    let variables = &workflow.variables;
    let cwd = args.dir.as_ref().map_or_else(|| cwd.to_owned(), |dir| cwd.join(dir));
    let cwd = crate::text_folder(crow_tools::resolve(&cwd)).map(|_| cwd)?;
    let found = Project::find(&cwd, variables.init_dir.as_deref())?;
    let own = settings.prompts_dir.join("speckit");
    let is_json = args.json;
    if let SpeckitCommand::NewFeature(new) = &args.command {
        let project = match found {
            Some(project) => project,
            None => Project::at(cwd.canonicalize().map_err(|error| unusable(&cwd, &error))?),
        };
        let step = Step { project, own: &own, workflow, named: None };
        return step.new_feature(new, is_json, out, more);
    }
    let project = found.ok_or_else(|| {
        let missing = format!("there is no .specify/ in {} or above", cwd.display());
        let hint =
            "`/speckit init` begins a project, `crow-cli speckit new-feature` begins it with a feature";
        Exit::new(Code::Failed, missing).with_hint(hint)
    })?;
    let step = Step { project, own: &own, workflow, named: args.feature.as_deref() };
    let printed = match &args.command {
        SpeckitCommand::Paths => step.paths()?,
        SpeckitCommand::Prereq(needed) => step.prereq(needed)?,
        SpeckitCommand::SetupPlan => step.setup_plan(more)?,
        SpeckitCommand::SetupTasks => step.setup_tasks()?,
        SpeckitCommand::Tasks => return step.tasks(is_json, out),
        SpeckitCommand::ResolveTemplate { name } => {
            let page = step.page(name)?;
            if !is_json {
                return Ok(write!(out, "{}", page.text)?);
            }
            json!({"TEMPLATE_NAME": page.name, "TEMPLATE_CONTENT": page.text})
        }
        SpeckitCommand::NewFeature(_) => return Ok(()),
    };
    print(&printed, is_json, out)
}

/// What every step looks at.
struct Step<'a> {
    project: Project,
    own: &'a Path,
    workflow: &'a WorkflowSettings,
    named: Option<&'a str>,
}

impl Step<'_> {
    fn page(&self, name: &str) -> Result<Page, SpeckitError> {
        page(&self.project, Some(self.own), name)
    }

    fn asked(&self) -> WhoAsks<'_> {
        WhoAsks {
            named: self.named,
            bound: None,
            variables: &self.workflow.variables,
            specs_root: &self.workflow.specs_root,
        }
    }

    /// Finds the feature; what the environment says is kept for programs without that environment.
    fn feature(&self) -> Result<Feature, SpeckitError> {
        let (feature, origin) = resolve(&self.project, self.asked())?;
        if origin == Origin::Variable && !self.workflow.variables.no_persist {
            write_pointer(&self.project, &feature.dir)?;
        }
        Ok(feature)
    }

    /// What the feature is called.
    fn label(&self, feature: &Feature) -> String {
        self.workflow.variables.feature.clone().unwrap_or_else(|| feature.name.clone())
    }

    fn paths(&self) -> Result<Value, SpeckitError> {
        let (feature, _) = resolve(&self.project, self.asked())?;
        Ok(json!({
            "REPO_ROOT": self.project.root(),
            "BRANCH": self.label(&feature),
            "FEATURE_DIR": feature.dir,
            "FEATURE_SPEC": feature.spec(),
            "IMPL_PLAN": feature.plan(),
            "TASKS": feature.tasks(),
        }))
    }

    fn prereq(&self, args: &PrereqArgs) -> Result<Value, SpeckitError> {
        let feature = self.feature()?;
        let mut needs = vec![Need::Plan];
        needs.extend(args.require_spec.then_some(Need::Spec));
        needs.extend(args.require_tasks.then_some(Need::Tasks));
        check_needs(&self.project, &feature, &needs)?;
        let mut docs = docs(&feature);
        docs.extend((args.include_tasks && feature.tasks().is_file()).then_some("tasks.md"));
        let mut printed = json!({"FEATURE_DIR": feature.dir, "AVAILABLE_DOCS": docs});
        if let Some(name) = &args.template {
            printed["TEMPLATE_CONTENT"] = self.page(name)?.text.into();
        }
        Ok(printed)
    }

    fn setup_plan(&self, more: &mut impl Write) -> Result<Value, Exit> {
        let feature = self.feature()?;
        let is_new = setup_plan(&self.project, &feature, &jiff::Zoned::now(), &|name| self.page(name))?;
        let plan = self.project.shown(&feature.plan());
        note(more, &if is_new { format!("{plan} is new") } else { format!("{plan} stays as it is") });
        Ok(json!({
            "FEATURE_SPEC": feature.spec(),
            "IMPL_PLAN": feature.plan(),
            "FEATURE_DIR": feature.dir,
            "BRANCH": self.label(&feature),
        }))
    }

    fn setup_tasks(&self) -> Result<Value, SpeckitError> {
        let feature = self.feature()?;
        let page = setup_tasks(&self.project, &feature, &|name| self.page(name))?;
        Ok(json!({
            "FEATURE_DIR": feature.dir,
            "AVAILABLE_DOCS": docs(&feature),
            "TASKS_TEMPLATE": self.template(&page.name)?,
            "TASKS_TEMPLATE_CONTENT": page.text,
        }))
    }

    /// Where the strongest layer of a template is; empty when it is ours.
    fn template(&self, name: &str) -> Result<String, SpeckitError> {
        let strongest = layers(&self.project, Some(self.own), name)?.into_iter().next();
        let file = strongest.and_then(|layer| layer.file);
        Ok(file.map(|file| self.project.place(file).display().to_string()).unwrap_or_default())
    }

    fn tasks(&self, is_json: bool, out: &mut impl Write) -> Result<(), Exit> {
        let (feature, _) = resolve(&self.project, self.asked())?;
        check_needs(&self.project, &feature, &[Need::Tasks])?;
        let list = feature.task_list()?;
        if is_json {
            let tasks = list.tasks.iter().map(|task| {
                let stories: Vec<String> = task.stories.iter().map(|story| format!("US{story}")).collect();
                json!({
                    "id": task.id.as_str(), "done": task.done, "parallel": task.parallel, "stories": stories,
                    "phase": list.phase(task).map(ToString::to_string), "text": task.text,
                })
            });
            return Ok(writeln!(out, "{}", table::json(&json!({ "tasks": tasks.collect::<Vec<_>>() })))?);
        }
        let rows = list.tasks.iter().map(|task| {
            [if task.done { "x" } else { " " }.to_owned(), task.id.to_string(), task.text.clone()]
        });
        Ok(table::write(out, rows)?)
    }

    fn new_feature(
        &self,
        args: &NewFeatureArgs,
        is_json: bool,
        out: &mut impl Write,
        more: &mut impl Write,
    ) -> Result<(), Exit> {
        let numbering = match (&args.number, args.timestamp) {
            (number, true) => {
                if number.is_some() {
                    note(more, "the number is not used: a timestamp stands in its place");
                }
                Numbering::Timestamp
            }
            (Some(number), false) => Numbering::Prefer(parse_number(number)?),
            (None, false) => Numbering::Next,
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
            true => existing(&self.project, &new)?,
            false => None,
        };
        let created = match (args.dry_run, existing) {
            (true, Some(there)) => there,
            (true, None) => would_create(&self.project, &new)?,
            (false, there) => self.made(&new, there)?,
        };
        for text in &created.notes {
            note(more, text);
        }
        let mut printed = json!({
            "BRANCH_NAME": created.feature.name,
            "SPEC_FILE": created.feature.spec(),
            "FEATURE_NUM": created.prefix,
        });
        if args.dry_run {
            printed["DRY_RUN"] = true.into();
        }
        print(&printed, is_json, out)
    }

    /// Makes a feature, or completes the one that is there, and points the project at it.
    fn made(&self, new: &NewFeature<'_>, there: Option<Created>) -> Result<Created, SpeckitError> {
        let pages = |name: &str| self.page(name);
        if !self.project.is_begun() {
            init(&self.project, &pages)?;
        }
        let created = match there {
            Some(there) => {
                take_up(&self.project, &there.feature, new.description, new.now, &pages)?;
                there
            }
            None => create(&self.project, new, &pages)?,
        };
        if !self.workflow.variables.no_persist {
            write_pointer(&self.project, &created.feature.dir)?;
        }
        Ok(created)
    }
}

/// Prints one JSON document, or a line for each thing.
fn print(printed: &Value, is_json: bool, out: &mut impl Write) -> Result<(), Exit> {
    if is_json {
        return Ok(writeln!(out, "{}", table::json(printed))?);
    }
    for (name, value) in printed.as_object().into_iter().flatten() {
        match value {
            Value::String(text) if text.contains('\n') => writeln!(out, "{name}:\n{}", table::text(text))?,
            Value::String(text) => writeln!(out, "{name}: {}", table::plain(text))?,
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

fn note(more: &mut impl Write, text: &str) {
    // When stderr is gone there is nobody left to tell.
    let _ = writeln!(more, "note: {}", table::plain(text));
}

fn unusable(dir: &Path, error: &io::Error) -> Exit {
    Exit::new(Code::Failed, format!("could not work in {}: {error}", dir.display()))
}

impl From<SpeckitError> for Exit {
    fn from(error: SpeckitError) -> Self {
        let exit = Self::new(Code::Failed, table::plain(&error.to_string()));
        match error.hint() {
            Some(hint) => exit.with_hint(hint),
            None => exit,
        }
    }
}
