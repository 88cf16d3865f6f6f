//! The grants that apply in one session, those of the session and those of its project, and what `/permissions` shows
//! of them.

use std::fmt::Write as _;

use super::grants::{Grant, GrantOffer, GrantSet};
use crate::escape_hidden;

/// The time for which a grant is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantScope {
    /// In its session.
    Session,
    /// Permanently in its project.
    Project,
}

/// A grant as `/permissions` lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ListedGrant {
    scope: GrantScope,
    grant: Grant,
}

impl ListedGrant {
    fn with_scope(scope: GrantScope) -> impl Fn(&Grant) -> Self {
        move |grant| Self { scope, grant: grant.clone() }
    }
}

/// The grants of a session and of its project.
#[derive(Debug, Clone, Default)]
pub struct SessionGrants {
    session: GrantSet,
    project: GrantSet,
    /// The last list that was shown, in its order.
    listed: Vec<ListedGrant>,
}

/// Grants that `/permissions` removes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantRemoval(Vec<ListedGrant>);

impl GrantRemoval {
    /// Returns the grants to remove from the record of the project.
    pub fn project_grants(&self) -> Vec<Grant> {
        let of_project = self.0.iter().filter(|listed| listed.scope == GrantScope::Project);
        of_project.map(|listed| listed.grant.clone()).collect()
    }

    /// Renders the answer after the removal.
    pub fn render_result(&self) -> String {
        match self.0.as_slice() {
            [] => "There are no stored permissions.\n".to_owned(),
            [listed] => format!("Removed: {}.\n", escape_hidden(&listed.grant.description())),
            several => format!("{} permissions were removed.\n", several.len()),
        }
    }
}

impl SessionGrants {
    /// Adds stored grants of the session. Grants that could not be stored stay valid beside them.
    pub fn add_session_grants(&mut self, stored: &GrantSet) {
        self.session.extend(stored.iter().cloned());
    }

    /// Replaces the grants of the project.
    pub fn replace_project_grants(&mut self, stored: GrantSet) {
        self.project = stored;
    }

    /// Returns the grants of the session only.
    pub fn session_grants(&self) -> &GrantSet {
        &self.session
    }

    /// Returns all grants.
    pub fn all_grants(&self) -> GrantSet {
        self.session.iter().chain(self.project.iter()).cloned().collect()
    }

    /// Whether a question with this offer was allowed before.
    pub fn covers_offer(&self, offer: &GrantOffer) -> bool {
        let covers = |grants: &[Grant]| {
            let is_granted = |grant: &Grant| self.session.contains(grant) || self.project.contains(grant);
            !grants.is_empty() && grants.iter().all(is_granted)
        };
        covers(&offer.session) || covers(&offer.project)
    }

    /// Adds the part of an approved offer that belongs to the session; returns whether that changed its grants. The
    /// part of the project is added when it is stored, or by [`Self::keep_unstored`].
    pub fn add_approved(&mut self, scope: GrantScope, offer: &GrantOffer) -> bool {
        let before = self.session.clone();
        let for_session = offer.session.iter().filter(|grant| match scope {
            GrantScope::Session => true,
            GrantScope::Project => !offer.project.contains(grant),
        });
        self.session.extend(for_session.cloned());
        self.session != before
    }

    /// Adds the project's part of an offer, which could not be stored, to the session.
    pub fn keep_unstored(&mut self, offer: &GrantOffer) {
        self.session.extend(offer.project.iter().cloned());
    }

    /// Lists the grants with numbers, which `/permissions remove` takes.
    pub fn render_list(&mut self, project: Option<&str>) -> String {
        let session_grants = self.session.iter().filter(|grant| !self.project.contains(grant));
        let session_grants = session_grants.map(ListedGrant::with_scope(GrantScope::Session));
        let project_grants = self.project.iter().map(ListedGrant::with_scope(GrantScope::Project));
        self.listed = project_grants.chain(session_grants).collect();
        if self.listed.is_empty() {
            return "There are no stored permissions. A permission question offers to store one.\n"
                .to_owned();
        }
        let project = project.map(escape_hidden);
        let mut text = String::new();
        let mut section = None;
        for (index, ListedGrant { scope, grant }) in self.listed.iter().enumerate() {
            if section != Some(*scope) {
                section = Some(*scope);
                text.push_str(&match scope {
                    GrantScope::Project => {
                        format!("Always allowed in {}:\n\n", project.as_deref().unwrap_or("this project"))
                    }
                    GrantScope::Session => "\nAllowed for this session:\n\n".to_owned(),
                });
            }
            let name = escape_hidden(&grant.description());
            let _ = writeln!(text, "{}. {name}", index + 1);
        }
        text.push_str("\n`/permissions remove N` removes one, `/permissions clear` removes all.\n");
        text.trim_start().to_owned()
    }

    /// Returns the removal of one grant by its number in the list that was shown last.
    pub fn removal_of_listed(&self, number: usize) -> Option<GrantRemoval> {
        let listed = self.listed.get(number.checked_sub(1)?)?;
        Some(GrantRemoval(vec![listed.clone()]))
    }

    /// Returns the removal of all grants.
    pub fn removal_of_all(&self) -> GrantRemoval {
        let session_grants = self.session.iter().map(ListedGrant::with_scope(GrantScope::Session));
        let project_grants = self.project.iter().map(ListedGrant::with_scope(GrantScope::Project));
        GrantRemoval(session_grants.chain(project_grants).collect())
    }

    /// Removes grants. The list that was shown keeps its numbers.
    pub fn remove(&mut self, removal: &GrantRemoval) {
        for ListedGrant { scope, grant } in &removal.0 {
            // A grant for the project is also stored in the session in which it was given.
            self.session.remove(grant);
            if *scope == GrantScope::Project {
                self.project.remove(grant);
            }
        }
    }
}
