use crow_core::TokenUsage;

use super::apply_price;
use crate::ModelPrice;

/// A price in dollars per million tokens: input, output, cached, cache written.
fn price(input: f64, output: f64, cached: Option<f64>, cache_written: Option<f64>) -> ModelPrice {
    ModelPrice { input, output, cached, cache_written }
}

/// Checks the cost of `input output cached cache_written` tokens.
#[track_caller]
fn check(price: ModelPrice, [input, output, cached, cache_written]: [u64; 4], expected: Option<u64>) {
    let usage = TokenUsage { input, output, cached, cache_written, cost: None };
    assert_eq!(price.cost_for(usage), expected, "{price:?} {usage:?}");
}

#[test]
fn each_kind_of_token_has_its_price() {
    let plain = price(3.0, 15.0, None, None);
    check(plain, [0, 0, 0, 0], Some(0));
    check(plain, [1, 0, 0, 0], Some(3_000));
    check(plain, [0, 1, 0, 0], Some(15_000));
    check(plain, [1_000_000, 1_000_000, 0, 0], Some(18_000_000_000));
    // Without prices of their own, cached tokens cost as much as others.
    check(plain, [1000, 0, 600, 300], Some(3_000_000));

    let cached = price(3.0, 15.0, Some(0.3), Some(3.75));
    check(cached, [1000, 10, 600, 300], Some(100 * 3_000 + 600 * 300 + 300 * 3_750 + 10 * 15_000));
    check(cached, [600, 0, 600, 0], Some(180_000));
}

#[test]
fn small_prices_are_not_lost() {
    check(price(0.0, 0.0, None, None), [1_000_000, 5, 0, 0], Some(0));
    check(price(0.0375, 0.15, None, None), [1, 1, 0, 0], Some(188));
    check(price(0.0001, 0.0001, None, None), [12, 0, 0, 0], Some(1));
}

#[test]
fn invalid_prices_and_counts_are_handled() {
    let dear = price(3.0, 15.0, Some(0.3), Some(3.75));
    // More cached than input tokens.
    check(dear, [10, 0, u64::MAX, u64::MAX], Some(3_000));
    check(dear, [10, 0, 4, u64::MAX], Some(4 * 300 + 6 * 3_750));
    check(dear, [u64::MAX, u64::MAX, 0, 0], Some(u64::MAX));
    check(price(f64::MAX, f64::MAX, None, None), [u64::MAX, 1, 0, 0], Some(u64::MAX));
    check(price(f64::NAN, 1.0, None, None), [1, 1, 0, 0], None);
    check(price(1.0, f64::INFINITY, None, None), [1, 0, 0, 0], None);
    check(price(1.0, 1.0, Some(-1.0), None), [1, 0, 1, 0], None);
}

#[test]
fn reported_cost_takes_precedence() {
    let usage = TokenUsage { cost: Some(7), ..TokenUsage::new(1, 1) };
    assert_eq!(apply_price(usage, Some(price(3.0, 15.0, None, None))), usage);
    assert_eq!(apply_price(TokenUsage::new(1, 1), None), TokenUsage::new(1, 1));
    let priced = apply_price(TokenUsage::new(1, 1), Some(price(3.0, 15.0, None, None)));
    assert_eq!(priced, TokenUsage { cost: Some(18_000), ..TokenUsage::new(1, 1) });
}
