//! Which tools a request offers to the model. All can be called; a request has the definitions of at most a fixed number,
//! and `tool_search` finds the others. Must not know what a tool does.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crow_core::{ToolAccess, ToolCallInfo, ToolKind, ToolResult, ToolSpec};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::{
    Tool, ToolCx, ToolFuture, ToolRegistry, Workspace,
    tool::{into_tool_future, parse_arguments},
    tool_error::ToolError,
    tool_set::ToolSet,
};

/// Places that a running workflow step may fill with its own tools.
const STEP_TOOLS_MAX: usize = 8;

/// The share of the servers' places that is left for tools that are found later: 1 of this.
const FREE_SHARE: usize = 4;

/// Tools that one search adds.
const FOUND_MAX: usize = 8;

/// The beginning of a description in a result.
const SUMMARY_CHARS: usize = 160;

/// A longer query is no query.
const QUERY_WORDS_MAX: usize = 32;

const TOOL_SEARCH: &str = "tool_search";

/// The place of `tool_search` in the order, which is no name of a tool.
const SEARCH_PLACE: &str = "";

/// The tools that the requests of a session offer. The list only grows at its end, so that a provider's cache of earlier
/// requests stays valid; a tool leaves it only when its server is gone, or for another one when the list is full.
#[derive(Debug)]
pub struct ToolOffer {
    tools_max: usize,
    state: Mutex<OfferState>,
}

#[derive(Debug, Default)]
struct OfferState {
    /// The offered tools of servers, in the order of their definitions.
    names: Vec<String>,
    /// The same, the one whose last use or addition is oldest first.
    by_use: Vec<String>,
    /// The number of places for the servers' tools and `tool_search`.
    n_places: usize,
    /// There were more tools than places, so `tool_search` is offered.
    is_limited: bool,
    notice: Option<String>,
}

impl ToolOffer {
    /// The number that OpenAI's API accepts. Others accept more, but each definition costs context.
    pub const TOOLS_MAX: usize = 128;

    /// Offers at most this number of tools.
    pub fn new(tools_max: usize) -> Arc<Self> {
        Arc::new(Self { tools_max, state: Mutex::default() })
    }

    /// Chooses from Crow's own tools and those of servers.
    pub fn choose(self: &Arc<Self>, own: &ToolRegistry, served: Vec<Arc<dyn Tool>>) -> ToolSet {
        let tools = own.with_tools(served);
        let specs = tools.tool_specs();
        let (own_specs, served_specs) = specs.split_at(own.tool_specs().len());
        let n_places = self.tools_max.saturating_sub(own_specs.len() + STEP_TOOLS_MAX);
        let mut state = self.lock_state();
        state.update(served_specs, n_places);
        if !state.is_limited && served_specs.len() > n_places {
            state.limit(n_places);
            state.notice = Some(format!(
                "There are {} tools, and a request has at most {} of them: the model finds the others of the MCP \
                 servers with {TOOL_SEARCH}.",
                specs.len(),
                self.tools_max,
            ));
        }
        state.fill(served_specs, n_places);
        let (tools, search_spec) = if state.is_limited {
            let search = ToolSearch::new(self.clone(), served_specs.to_vec());
            let tools = tools.with_tools(vec![Arc::new(search)]);
            let search_spec = tools.tool_specs().pop();
            (tools, search_spec)
        } else {
            (tools, None)
        };
        let find_spec = |name: &String| match name.as_str() {
            SEARCH_PLACE => search_spec.clone(),
            name => served_specs.iter().find(|spec| spec.name == name).cloned(),
        };
        let offered = own_specs.iter().cloned().chain(state.names.iter().filter_map(find_spec)).collect();
        drop(state);
        ToolSet { tools, specs: offered }
    }

    /// Takes the notice for the user, which there is once.
    pub fn take_notice(&self) -> Option<String> {
        self.lock_state().notice.take()
    }

    /// Notes that the model has called a tool; the list keeps it longest.
    pub fn note_use(&self, name: &str) {
        let mut state = self.lock_state();
        if let Some(index) = state.by_use.iter().position(|used| used == name) {
            let name = state.by_use.remove(index);
            state.by_use.push(name);
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, OfferState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl OfferState {
    /// Forgets the tools that no longer exist.
    fn update(&mut self, served_specs: &[ToolSpec], n_places: usize) {
        let known: HashSet<&str> = served_specs.iter().map(|spec| spec.name.as_str()).collect();
        self.names.retain(|name| name == SEARCH_PLACE || known.contains(name.as_str()));
        self.by_use.retain(|name| known.contains(name.as_str()));
        self.n_places = n_places;
    }

    /// Adds the place of `tool_search`, from now on.
    fn limit(&mut self, n_places: usize) {
        self.is_limited = true;
        self.names.truncate(n_places.saturating_sub(1));
        let Self { names, by_use, .. } = self;
        by_use.retain(|name| names.contains(name));
        names.push(SEARCH_PLACE.to_owned());
    }

    /// Offers tools in the order of their servers while there are places to fill.
    fn fill(&mut self, served_specs: &[ToolSpec], n_places: usize) {
        let n_filled = if self.is_limited { first_places(n_places) } else { n_places };
        for spec in served_specs {
            if self.names.len() >= n_filled {
                break;
            }
            if !self.names.contains(&spec.name) {
                self.names.push(spec.name.clone());
                self.by_use.push(spec.name.clone());
            }
        }
    }

    /// Adds a tool at the end of the offered ones, or notes that it was used again.
    fn add(&mut self, name: &str) {
        self.by_use.retain(|used| used != name);
        if !self.names.iter().any(|offered| offered == name) {
            if self.names.len() >= self.n_places && !self.by_use.is_empty() {
                let oldest = self.by_use.remove(0);
                self.names.retain(|offered| *offered != oldest);
            }
            self.names.push(name.to_owned());
        }
        self.by_use.push(name.to_owned());
    }
}

/// Returns how many places of the servers' tools are filled at first.
fn first_places(n_places: usize) -> usize {
    n_places - n_places / FREE_SHARE
}

/// `tool_search`: finds tools that the requests do not offer, and adds them.
struct ToolSearch {
    spec: ToolSpec,
    offer: Arc<ToolOffer>,
    served_specs: Vec<ToolSpec>,
}

#[derive(Deserialize)]
struct ToolSearchArgs {
    query: String,
}

impl ToolSearch {
    fn new(offer: Arc<ToolOffer>, served_specs: Vec<ToolSpec>) -> Self {
        let spec = ToolSpec {
            name: TOOL_SEARCH.to_owned(),
            description: "Finds further tools of the connected MCP servers, which are too many to be listed. The tools \
                          that it finds can be called from your next reply on."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "query": {
                        "type": "string",
                        "description": "Words for what the tool should do, or names of tools or servers"
                    }
                },
                "required": ["query"]
            }),
        };
        Self { spec, offer, served_specs }
    }
}

impl Tool for ToolSearch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_read_only(&self) -> bool {
        true
    }

    fn call_info(&self, _arguments: &Map<String, Value>, _workspace: &Workspace) -> ToolCallInfo {
        ToolCallInfo {
            title: "Find tools".to_owned(),
            kind: ToolKind::Search,
            locations: Vec::new(),
            access: ToolAccess::Nothing,
        }
    }

    fn run<'a>(&'a self, arguments: &'a Map<String, Value>, _cx: ToolCx<'a>) -> ToolFuture<'a> {
        into_tool_future(async move {
            let ToolSearchArgs { query } = parse_arguments(arguments)?;
            let found = find_tools(&self.served_specs, &query);
            if found.is_empty() {
                return Err(ToolError(format!(
                    "no tool matches {query:?}; {} tools can be searched by the words of their names and descriptions",
                    self.served_specs.len()
                )));
            }
            let mut text = "These tools can be called from the next reply on:\n".to_owned();
            for spec in found {
                self.offer.lock_state().add(&spec.name);
                text.push_str(&format!("- {}: {}\n", spec.name, summarize(&spec.description)));
            }
            Ok(ToolResult::success(text))
        })
    }
}

/// Finds the tools that match most words of a query; words of a name count more.
fn find_tools<'a>(specs: &'a [ToolSpec], query: &str) -> Vec<&'a ToolSpec> {
    let query = query.to_lowercase();
    let words: Vec<&str> = query
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .take(QUERY_WORDS_MAX)
        .collect();
    let score = |spec: &ToolSpec| -> usize {
        let (name, description) = (spec.name.to_lowercase(), spec.description.to_lowercase());
        let scores = words.iter().map(|word| match () {
            () if name == *word => 100,
            () if name.split(['_', '-', '.']).any(|part| part == *word) => 8,
            () if name.contains(word) => 4,
            () if description.contains(word) => 1,
            () => 0,
        });
        scores.sum()
    };
    let mut found: Vec<(usize, &ToolSpec)> =
        specs.iter().map(|spec| (score(spec), spec)).filter(|(score, _)| *score > 0).collect();
    found.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    found.into_iter().take(FOUND_MAX).map(|(_, spec)| spec).collect()
}

/// Returns the beginning of a description on one line.
fn summarize(description: &str) -> String {
    let line = description.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SUMMARY_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}
