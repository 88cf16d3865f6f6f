#!/bin/sh
# Installs crow-cli for the current user: downloads the archive of a release, compares its checksum with that of the same
# release, and moves the program to ~/.local/bin. Needs no root.
#
#   sh install.sh [VERSION]
#
# CROW_INSTALL_DIR   another directory than ~/.local/bin
# CROW_INSTALL_URL   another server than GitHub; it has the files of a release under URL/download/vVERSION/ and
#                    URL/latest/download/
set -eu

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

download() {
    if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --retry 2 --output "$2" "$1"
    elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$2" "$1"
    else
        fail "curl or wget is needed"
    fi || fail "could not download $1"
}

checksum() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum "$1"
    elif command -v shasum >/dev/null 2>&1; then
        shasum -a 256 "$1"
    else
        fail "sha256sum or shasum is needed to check the download"
    fi | cut -d ' ' -f 1
}

target() {
    case $(uname -s) in
    Linux) system=linux ;;
    Darwin) system=darwin ;;
    *) fail "there is no archive for $(uname -s); see the documentation for other ways to install" ;;
    esac
    case $(uname -m) in
    x86_64 | amd64) machine=x86_64 ;;
    aarch64 | arm64) machine=aarch64 ;;
    *) fail "there is no archive for $(uname -m)" ;;
    esac
    if [ $system = linux ] && ! getconf GNU_LIBC_VERSION >/dev/null 2>&1; then
        machine=$machine-musl
    fi
    echo $system-$machine
}

main() {
    releases=${CROW_INSTALL_URL:-https://github.com/crow-cli/crow-cli/releases}
    directory=${CROW_INSTALL_DIR:-$HOME/.local/bin}
    archive=crow-cli-$(target).tar.gz
    if [ $# -gt 0 ]; then
        from=$releases/download/v${1#v}
    else
        from=$releases/latest/download
    fi

    temporary=$(mktemp -d)
    trap 'rm -rf "$temporary"' EXIT
    trap 'exit 1' HUP INT TERM
    echo "Downloading $from/$archive"
    download "$from/$archive" "$temporary/$archive"
    download "$from/SHA256SUMS" "$temporary/SHA256SUMS"
    expected=$(awk -v name="$archive" '$2 == name { print $1 }' "$temporary/SHA256SUMS")
    [ -n "$expected" ] || fail "$from/SHA256SUMS does not list $archive"
    actual=$(checksum "$temporary/$archive")
    [ "$actual" = "$expected" ] || fail "the checksum of $archive is $actual, expected $expected; nothing was installed"

    tar -xzf "$temporary/$archive" -C "$temporary" crow-cli
    mkdir -p "$directory"
    # A rename in one file system replaces a running program without harm.
    mv "$temporary/crow-cli" "$directory/.crow-cli.new"
    mv "$directory/.crow-cli.new" "$directory/crow-cli"
    echo "Installed $("$directory/crow-cli" --version) to $directory/crow-cli"
    case :$PATH: in
    *:"$directory":*) ;;
    *) echo "Add it to your PATH: export PATH=\"$directory:\$PATH\"" ;;
    esac
    echo "Next: crow-cli demo, then crow-cli init"
}

# The last line calls it, so that a download that was cut off runs nothing.
main "$@"
