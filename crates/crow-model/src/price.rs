//! The cost of a reply. Pure: tokens and prices in, an amount out; knows neither where prices come from nor how the
//! amount is used.

use crow_core::TokenUsage;

use crate::ModelPrice;

/// Billionths of a dollar per token for each dollar per million tokens.
const BILLIONTHS_PER_TOKEN: f64 = 1_000.0;

/// Adds the cost of a reply, unless its provider reported it.
pub(crate) fn apply_price(usage: TokenUsage, price: Option<ModelPrice>) -> TokenUsage {
    TokenUsage { cost: usage.cost.or_else(|| price?.cost_for(usage)), ..usage }
}

impl ModelPrice {
    /// Returns the cost in billionths of a US dollar; `None` if the price is invalid.
    pub fn cost_for(self, usage: TokenUsage) -> Option<u64> {
        // Whatever a server reports, each token is paid for once.
        let cached = usage.cached.min(usage.input);
        let cache_written = usage.cache_written.min(usage.input - cached);
        let charges = [
            (usage.input - cached - cache_written, self.input),
            (cached, self.cached.unwrap_or(self.input)),
            (cache_written, self.cache_written.unwrap_or(self.input)),
            (usage.output, self.output),
        ];
        if charges.iter().any(|(_, dollars)| !dollars.is_finite() || *dollars < 0.0) {
            return None;
        }
        let cost: f64 =
            charges.iter().map(|(n_tokens, dollars)| *n_tokens as f64 * dollars * BILLIONTHS_PER_TOKEN).sum();
        // The conversion saturates.
        Some(cost.round() as u64)
    }
}

#[cfg(test)]
mod tests;
