//! Stores what the user allowed beyond single calls: for a session, stored with the session, and for a project, stored
//! in the user's own configuration directory. A session's turns and its children share one [`GrantStore`].

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crow_acp::GrantScope;
use crow_core::{Grant, GrantOffer, GrantSet, PermissionsAction, SessionId};
use crow_project::{project_root, read_grants};
use crow_store::StoreError;
use serde_json::Value;

use crate::runtime::AgentRuntime;

/// Key of the grants in a session's stored configuration.
const CONFIG_KEY: &str = "approvals";

/// The grants of a session and of the project it works in.
#[derive(Debug)]
pub(crate) struct GrantStore {
    runtime: Arc<AgentRuntime>,
    session: SessionId,
    /// True if a parent asks on behalf of this session and stores the project grants.
    is_child: bool,
    state: Mutex<GrantState>,
}

#[derive(Debug, Default)]
struct GrantState {
    /// `None` before the first turn.
    project: Option<PathBuf>,
    session_grants: GrantSet,
    project_grants: GrantSet,
    /// The last reported problem with the project's record.
    problem: Option<String>,
    /// The last list shown by `/permissions`, in its order.
    listed: Vec<(GrantScope, Grant)>,
}

impl GrantStore {
    /// Creates a store without grants.
    pub(crate) fn new(runtime: Arc<AgentRuntime>, session: SessionId, is_child: bool) -> Self {
        Self { runtime, session, is_child, state: Mutex::default() }
    }

    /// Loads the grants of the session and of the project around `cwd`. Returns a problem with them the first time it
    /// occurs.
    pub(crate) async fn load_grants(&self, config: Option<&str>, cwd: &Path) -> Option<String> {
        let config: Option<Value> = config.and_then(|config| serde_json::from_str(config).ok());
        let session_grants = config.and_then(|config| config.get(CONFIG_KEY).map(GrantSet::from_json));
        let (config_dir, cwd) = (self.runtime.config().config_dir.clone(), cwd.to_owned());
        let loaded = tokio::task::spawn_blocking(move || {
            let project = project_root(&cwd);
            let grants = read_grants(&config_dir, &project);
            (project, grants)
        });
        let (project, project_grants) = match loaded.await {
            Ok((project, grants)) => (Some(project), grants),
            Err(error) => (None, Err(error.to_string())),
        };
        let mut state = self.lock_state();
        // Grants that could not be stored are valid until the process ends.
        state.session_grants.extend(session_grants.iter().flat_map(GrantSet::iter).cloned());
        state.project = project;
        let problem = match project_grants {
            Ok(grants) => {
                state.project_grants = grants;
                None
            }
            Err(reason) => {
                state.project_grants = GrantSet::default();
                Some(format!(
                    "The permissions of this project could not be read, so Crow asks again: {reason}."
                ))
            }
        };
        let is_new_problem = state.problem != problem;
        state.problem.clone_from(&problem);
        problem.filter(|_| is_new_problem)
    }

    /// Returns the grants of the session and of the project.
    pub(crate) fn all_grants(&self) -> GrantSet {
        let state = self.lock_state();
        state.session_grants.iter().chain(state.project_grants.iter()).cloned().collect()
    }

    /// Whether a question with this offer was allowed before.
    pub(crate) fn covers_offer(&self, offer: &GrantOffer) -> bool {
        let granted = self.all_grants();
        let covers =
            |grants: &[Grant]| !grants.is_empty() && grants.iter().all(|grant| granted.contains(grant));
        covers(&offer.session) || covers(&offer.project)
    }

    /// Stores an approval. An approval that cannot be stored is valid until the process ends; the error says so.
    pub(crate) async fn remember_grant(&self, scope: GrantScope, offer: &GrantOffer) -> Result<(), String> {
        let scope = if self.is_child { GrantScope::Session } else { scope };
        let for_session = offer.session.iter().filter(|grant| match scope {
            GrantScope::Session => true,
            GrantScope::Project => !offer.project.contains(grant),
        });
        let (project, is_changed) = {
            let mut state = self.lock_state();
            let before = state.session_grants.clone();
            state.session_grants.extend(for_session.cloned());
            (state.project.clone(), state.session_grants != before)
        };
        let stored = if is_changed { self.store_session_grants().await } else { Ok(()) };
        let stored_grants = match (scope, project) {
            (GrantScope::Session, _) => Ok(None),
            (GrantScope::Project, None) => Err("the project is not known".to_owned()),
            (GrantScope::Project, Some(project)) => {
                self.remember_for_project(&project, &offer.project).await.map(Some)
            }
        };
        let stored_grants = stored_grants.map(|kept| {
            let mut state = self.lock_state();
            state.project_grants = kept.unwrap_or_else(|| state.project_grants.clone());
        });
        if stored_grants.is_err() {
            self.lock_state().session_grants.extend(offer.project.iter().cloned());
        }
        stored.and(stored_grants).map_err(|reason| {
            format!("The permission could not be stored and is valid until Crow exits: {reason}.")
        })
    }

    /// Adds grants to the record of a project and returns all grants in it.
    pub(crate) async fn remember_for_project(
        &self,
        project: &Path,
        grants: &[Grant],
    ) -> Result<GrantSet, String> {
        let grants = grants.to_vec();
        self.change_project_grants(project, move |stored_grants| stored_grants.extend(grants)).await
    }

    /// Runs a `/permissions` action and returns the answer.
    pub(crate) async fn run_permissions_action(&self, action: PermissionsAction, cwd: &Path) -> String {
        let tip = match self.runtime.store.session_tip(&self.session).await {
            Ok(tip) => tip,
            Err(error) => return format!("The session could not be read: {error}.\n"),
        };
        if let Some(problem) = self.load_grants(tip.as_ref().map(|tip| tip.config.as_str()), cwd).await {
            return format!("{problem}\n");
        }
        let removed = match action {
            PermissionsAction::List => return self.render_list(),
            PermissionsAction::Remove(number) => {
                let state = self.lock_state();
                let entry = number.checked_sub(1).and_then(|index| state.listed.get(index).cloned());
                match entry {
                    Some(entry) => vec![entry],
                    None => {
                        return "There is no permission with this number. Type /permissions to see the list.\n".to_owned();
                    }
                }
            }
            PermissionsAction::Clear => {
                let state = self.lock_state();
                let session_grants =
                    state.session_grants.iter().map(|grant| (GrantScope::Session, grant.clone()));
                let project_grants =
                    state.project_grants.iter().map(|grant| (GrantScope::Project, grant.clone()));
                session_grants.chain(project_grants).collect()
            }
        };
        match self.remove_grants(&removed).await {
            Ok(()) => {
                let descriptions: Vec<String> =
                    removed.iter().map(|(_, grant)| grant.description()).collect();
                match descriptions.as_slice() {
                    [] => "There are no stored permissions.\n".to_owned(),
                    [name] => format!("Removed: {}.\n", crow_core::escape_hidden(name)),
                    descriptions => format!("{} permissions were removed.\n", descriptions.len()),
                }
            }
            Err(reason) => format!("The permissions could not be removed permanently: {reason}.\n"),
        }
    }

    async fn remove_grants(&self, removed: &[(GrantScope, Grant)]) -> Result<(), String> {
        let with_scope = |scope: GrantScope| {
            let scope = removed.iter().filter(move |(grant_scope, _)| *grant_scope == scope);
            scope.map(|(_, grant)| grant.clone()).collect::<Vec<_>>()
        };
        let project_grants = with_scope(GrantScope::Project);
        let project = {
            let mut state = self.lock_state();
            for (_, grant) in removed {
                // A grant for the project is also stored in the session in which it was given.
                state.session_grants.remove(grant);
            }
            for grant in &project_grants {
                state.project_grants.remove(grant);
            }
            state.project.clone()
        };
        self.store_session_grants().await?;
        let Some(project) = project.filter(|_| !project_grants.is_empty()) else { return Ok(()) };
        let removed = move |stored_grants: &mut GrantSet| {
            for grant in &project_grants {
                stored_grants.remove(grant);
            }
        };
        self.change_project_grants(&project, removed).await.map(drop)
    }

    fn render_list(&self) -> String {
        let mut state = self.lock_state();
        let project_grants = state.project_grants.iter().map(|grant| (GrantScope::Project, grant.clone()));
        let session_grants =
            state.session_grants.iter().filter(|grant| !state.project_grants.contains(grant));
        let session_grants = session_grants.map(|grant| (GrantScope::Session, grant.clone()));
        let listed: Vec<(GrantScope, Grant)> = project_grants.chain(session_grants).collect();
        if listed.is_empty() {
            state.listed = listed;
            return "There are no stored permissions. A permission question offers to store one.\n"
                .to_owned();
        }
        let project =
            state.project.as_ref().map(|project| crow_core::escape_hidden(&project.display().to_string()));
        let mut text = String::new();
        let mut section = None;
        for (index, (scope, grant)) in listed.iter().enumerate() {
            if section != Some(*scope) {
                section = Some(*scope);
                text.push_str(&match scope {
                    GrantScope::Project => {
                        format!("Always allowed in {}:\n\n", project.as_deref().unwrap_or("this project"))
                    }
                    GrantScope::Session => "\nAllowed for this session:\n\n".to_owned(),
                });
            }
            let name = crow_core::escape_hidden(&grant.description()).replace('\n', " ⏎ ");
            text.push_str(&format!("{}. {name}\n", index + 1));
        }
        text.push_str("\n`/permissions remove N` removes one, `/permissions clear` removes all.\n");
        state.listed = listed;
        text.trim_start().to_owned()
    }

    async fn store_session_grants(&self) -> Result<(), String> {
        let grants = self.lock_state().session_grants.to_json();
        match self.runtime.store.set_config(&self.session, CONFIG_KEY, Some(grants)).await {
            // The session has no first prompt yet, so nothing was granted in it.
            Ok(()) | Err(StoreError::NoSession(_)) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn change_project_grants(
        &self,
        project: &Path,
        change: impl FnOnce(&mut GrantSet) + Send + 'static,
    ) -> Result<GrantSet, String> {
        let (config_dir, project) = (self.runtime.config().config_dir.clone(), project.to_owned());
        let changed =
            tokio::task::spawn_blocking(move || crow_project::change_grants(&config_dir, &project, change))
                .await;
        changed.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn lock_state(&self) -> MutexGuard<'_, GrantState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
