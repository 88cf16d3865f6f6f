# What a change needs, in the order it is needed.

# Compile fast.
check:
    cargo check --workspace --all-targets

# Test everything.
test *ARGS:
    cargo nextest run --workspace {{ARGS}}

# Accept what `expect!` tests show now; read the diff.
accept:
    UPDATE_EXPECT=1 cargo test --workspace

# Format.
fmt:
    cargo fmt --all

# Run all that must hold before a change lands.
ci:
    .ci/run

# Build the documents as a site, into target/site.
site:
    .ci/run site
