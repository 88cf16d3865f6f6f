//! The web for the model: `web_search` and `web_fetch`.
//!
//! Must never reach an address that was not evaluated: the call info says whether an address is public, only checked
//! addresses are connected to, and nothing of the user but the address or the query is sent.

mod address;
mod client;
mod context;
mod fetch;
mod html_shape;
mod image;
mod markdown;
mod page;
mod search;
mod tag_stripper;

pub use self::context::WebConfig;
pub(crate) use self::{context::WebContext, fetch::WebFetchTool, search::WebSearchTool};
