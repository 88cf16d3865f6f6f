//! Stores what the user allowed beyond single calls: for a session, stored with the session, and for a project, stored
//! in the user's own configuration directory. A session's turns and its children share one [`GrantStore`].

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crow_core::{
    Grant, GrantOffer, GrantRemoval, GrantScope, GrantSet, PermissionsAction, SessionGrants, SessionId,
};
use crow_store::{Store, StoreError};
use serde_json::Value;
use tokio::time::timeout;

use crate::config_host::ConfigHost;
use crate::config_loader::LOOK_WAIT_MAX;
use crate::grant_records::{change_grants, project_root, read_grants};

/// Key of the grants in a session's stored configuration.
const CONFIG_KEY: &str = "approvals";

/// The grants of a session and of the project it works in.
pub struct GrantStore<H> {
    host: Arc<H>,
    store: Store,
    session: SessionId,
    /// True if a parent asks on behalf of this session and stores the project grants.
    is_child: bool,
    state: Mutex<GrantState>,
}

#[derive(Debug, Default)]
struct GrantState {
    /// `None` before the first turn.
    project: Option<PathBuf>,
    grants: SessionGrants,
    /// The last reported problem with the project's record.
    problem: Option<String>,
}

impl<H: ConfigHost> GrantStore<H> {
    /// Creates a store without grants.
    pub fn new(host: Arc<H>, store: Store, session: SessionId, is_child: bool) -> Self {
        Self { host, store, session, is_child, state: Mutex::default() }
    }

    /// Loads the grants of the session and of the project around `cwd`. Returns a problem with them the first time it
    /// occurs.
    pub async fn load_grants(&self, config: Option<&str>, cwd: &Path) -> Option<String> {
        let config: Option<Value> = config.and_then(|config| serde_json::from_str(config).ok());
        let session_grants = config.and_then(|config| config.get(CONFIG_KEY).map(GrantSet::from_json));
        let (config_dir, cwd) = (self.host.config_dir(), cwd.to_owned());
        let loaded = self.host.spawn_blocking(move || {
            let project = project_root(&cwd);
            let grants = read_grants(&config_dir, &project);
            (project, grants)
        });
        let (project, project_grants) = match loaded.await {
            Ok((project, grants)) => (Some(project), grants),
            Err(error) => (None, Err(error.to_string())),
        };
        let mut state = self.lock_state();
        if let Some(session_grants) = session_grants {
            state.grants.add_session_grants(&session_grants);
        }
        state.project = project;
        let (project_grants, problem) = match project_grants {
            Ok(grants) => (grants, None),
            Err(reason) => {
                let problem = format!(
                    "The permissions of this project could not be read, so Crow asks again: {reason}."
                );
                (GrantSet::default(), Some(problem))
            }
        };
        state.grants.replace_project_grants(project_grants);
        let is_new_problem = state.problem != problem;
        state.problem.clone_from(&problem);
        problem.filter(|_| is_new_problem)
    }

    /// Returns the grants of the session and of the project.
    pub fn all_grants(&self) -> GrantSet {
        self.lock_state().grants.all_grants()
    }

    /// Whether a question with this offer was allowed before.
    pub fn covers_offer(&self, offer: &GrantOffer) -> bool {
        self.lock_state().grants.covers_offer(offer)
    }

    /// Stores an approval. An approval that cannot be stored is valid until the process ends; the error says so.
    pub async fn remember_grant(&self, scope: GrantScope, offer: &GrantOffer) -> Result<(), String> {
        let scope = if self.is_child { GrantScope::Session } else { scope };
        let (project, is_changed) = {
            let mut state = self.lock_state();
            (state.project.clone(), state.grants.add_approved(scope, offer))
        };
        let stored = if is_changed { self.store_session_grants().await } else { Ok(()) };
        let stored_for_project = match (scope, project) {
            (GrantScope::Session, _) => Ok(()),
            (GrantScope::Project, None) => Err("the project is not known".to_owned()),
            (GrantScope::Project, Some(project)) => {
                let stored_grants = self.remember_for_project(&project, &offer.project).await;
                stored_grants.map(|grants| self.lock_state().grants.replace_project_grants(grants))
            }
        };
        if stored_for_project.is_err() {
            self.lock_state().grants.keep_unstored(offer);
        }
        stored.and(stored_for_project).map_err(|reason| {
            format!("The permission could not be stored and is valid until Crow exits: {reason}.")
        })
    }

    /// Adds grants to the record of a project and returns all grants in it.
    pub async fn remember_for_project(&self, project: &Path, grants: &[Grant]) -> Result<GrantSet, String> {
        let grants = grants.to_vec();
        self.change_project_grants(project, move |stored_grants| stored_grants.extend(grants)).await
    }

    /// Runs a `/permissions` action and returns the answer.
    pub async fn run_permissions_action(&self, action: PermissionsAction, cwd: &Path) -> String {
        let tip = match self.store.session_tip(&self.session).await {
            Ok(tip) => tip,
            Err(error) => return format!("The session could not be read: {error}.\n"),
        };
        let loading = self.load_grants(tip.as_ref().map(|tip| tip.config.as_str()), cwd);
        match timeout(LOOK_WAIT_MAX, loading).await {
            Ok(None) => {}
            Ok(Some(problem)) => return format!("{problem}\n"),
            Err(_) => return "The permissions could not be read. Try again.\n".to_owned(),
        }
        let removal = {
            let mut state = self.lock_state();
            match action {
                PermissionsAction::List => {
                    let project = state.project.as_ref().map(|project| project.display().to_string());
                    return state.grants.render_list(project.as_deref());
                }
                PermissionsAction::Remove(number) => state.grants.removal_of_listed(number),
                PermissionsAction::Clear => Some(state.grants.removal_of_all()),
            }
        };
        let Some(removal) = removal else {
            return "There is no permission with this number. Type /permissions to see the list.\n"
                .to_owned();
        };
        match self.remove_grants(&removal).await {
            Ok(()) => removal.render_result(),
            Err(reason) => format!("The permissions could not be removed permanently: {reason}.\n"),
        }
    }

    async fn remove_grants(&self, removal: &GrantRemoval) -> Result<(), String> {
        let project = {
            let mut state = self.lock_state();
            state.grants.remove(removal);
            state.project.clone()
        };
        self.store_session_grants().await?;
        let project_grants = removal.project_grants();
        let Some(project) = project.filter(|_| !project_grants.is_empty()) else { return Ok(()) };
        let remove_all = move |stored_grants: &mut GrantSet| {
            for grant in &project_grants {
                stored_grants.remove(grant);
            }
        };
        self.change_project_grants(&project, remove_all).await.map(drop)
    }

    async fn store_session_grants(&self) -> Result<(), String> {
        let grants = self.lock_state().grants.session_grants().to_json();
        match self.store.set_config(&self.session, CONFIG_KEY, Some(grants)).await {
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
        let (config_dir, project) = (self.host.config_dir(), project.to_owned());
        let changed = self.host.spawn_blocking(move || change_grants(&config_dir, &project, change)).await;
        changed.unwrap_or_else(|error| Err(error.to_string()))
    }

    fn lock_state(&self) -> MutexGuard<'_, GrantState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
