# What a change needs, in the order it is needed.

# Compile fast.
check:
    cargo check --workspace --all-targets

# Test everything.
test *ARGS:
    cargo nextest run --workspace {{ARGS}}

# Run the kernel in a simulated world, with faults: see docs/dev/simulation.md.
simulate *ARGS="10000":
    cargo run --profile simulation -p crow-agent --example simulate -- {{ARGS}}

# Check every promise, and print one table: see docs/dev/promises.md.
proof *ARGS:
    .ci/proof {{ARGS}}

# Measure this tree beside another revision.
bench-compare REV:
    .ci/proof --compare {{REV}}

# Kill real processes under load, 2,000 of them, on both databases: see docs/dev/kills.md.
kill *ARGS:
    cargo bench -p crow-cli --bench kill --profile dev -- {{ARGS}}

# Run tasks on workers while workers and servers are killed: see docs/dev/fleet.md. Needs nats-server.
fleet *ARGS:
    CROW_TEST_NATS="${CROW_TEST_NATS:-$(command -v nats-server)}" cargo bench -p crow-cli --bench fleet --profile dev -- {{ARGS}}

# Let one agent work for a long time, and say whether what it uses grows: see docs/dev/soak.md.
soak *ARGS:
    cargo bench -p crow-cli --bench soak --profile dev -- {{ARGS}}

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

# Test the Python package.
test-python:
    .ci/run python

# Run agents on small tasks with a real model: see docs/dev/eval.md.
eval *ARGS:
    .ci/run python-tools
    target/python-tools/bin/python eval/run.py run {{ARGS}}

# Build every package for this system, into target/packages.
packages:
    .ci/run packages

# Install each package in a fresh place and run it. Needs root, mmdebstrap, buildah, nix, ruby and Pythons 3.10 to 3.13.
packages-test *NAMES:
    python3 packaging/test.py {{NAMES}}
