# Prices of the shop, in cents.

# total COUNT PRICE DISCOUNT_PERCENT
total() {
    full=$(($1 * $2))
    echo $((full - full * $3 / 10))
}
