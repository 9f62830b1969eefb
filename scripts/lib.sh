# Shared helpers of the scripts beside this file. Sourced, never run: `. "$(dirname "$0")/lib.sh"`.
# Every helper says what it does in one line, and does nothing when there is nothing to do.
# shellcheck shell=bash

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TARGET_DIR=${CARGO_TARGET_DIR:-$ROOT/target}
case $TARGET_DIR in /*) ;; *) TARGET_DIR=$ROOT/$TARGET_DIR ;; esac
# Requirements, vectors and acceptance suites that lie beside the clone on some machines.
# shellcheck disable=SC2034 # the scripts that source this read it
SHARED=$ROOT/../shared
WASM_TARGET=wasm32-unknown-unknown

say() { printf '» %s\n' "$*"; }
die() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

# need_command NAME HINT
need_command() {
    command -v "$1" >/dev/null 2>&1 || die "$1 is missing: $2"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# need_apt PACKAGE...: installs the Debian packages that are not there yet.
need_apt() {
    local missing=() package
    for package in "$@"; do
        dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
            missing+=("$package")
    done
    [ ${#missing[@]} -eq 0 ] && return 0
    need_command apt-get "install ${missing[*]} by hand on a system without apt"
    say "Installing Debian packages: ${missing[*]}"
    as_root apt-get update -qq
    DEBIAN_FRONTEND=noninteractive as_root apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" >/dev/null
}

# need_rust_component NAME: rustfmt or clippy.
need_rust_component() {
    cargo "${1/rustfmt/fmt}" --version >/dev/null 2>&1 && return 0
    need_command rustup "install Rust with rustup"
    say "Adding the Rust component $1"
    rustup component add "$1" >/dev/null 2>&1 || die "rustup cannot add $1"
}

# need_rust_target TRIPLE: true when rustup has the target or can fetch it within a minute.
need_rust_target() {
    command -v rustup >/dev/null 2>&1 || return 1
    if rustup target list --installed 2>/dev/null | grep -qx "$1"; then return 0; fi
    say "Adding the Rust target $1"
    timeout 60 rustup target add "$1" >/dev/null 2>&1
}

# need_wasm_target: afterwards wasm_cargo works, with rustup's standard library or Debian's.
need_wasm_target() {
    [ -n "${WASM_BY:-}" ] && return 0
    if [ -z "${QM_WASM_DEBIAN:-}" ] && need_rust_target $WASM_TARGET; then
        WASM_BY=rustup
        return 0
    fi
    say "rustup has no $WASM_TARGET here: using Debian's Rust and building its standard library"
    need_apt rustc-web cargo-web rust-web-src
    WASM_LINKER=$(find "$(rustc --print sysroot)" -name rust-lld -type f | head -n 1)
    [ -n "$WASM_LINKER" ] || die "the Rust toolchain has no rust-lld"
    WASM_BY=debian
}

# wasm_cargo COMMAND ARGUMENT...: cargo for the WebAssembly target.
wasm_cargo() {
    need_wasm_target
    local command=$1
    shift
    if [ "$WASM_BY" = rustup ]; then
        cargo "$command" --target $WASM_TARGET "$@"
    else
        # Another compiler: its own target folder, or the two rebuild each other's work.
        RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc RUSTDOC=/usr/bin/rustdoc \
            CARGO_TARGET_DIR="$TARGET_DIR/web" \
            CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER="$WASM_LINKER" \
            /usr/bin/cargo "$command" --target $WASM_TARGET -Z build-std=std,panic_abort "$@"
    fi
}

# wasm_module: path of the module that `wasm_cargo build --profile wasm -p qm-host-wasm` makes.
wasm_module() {
    local base=$TARGET_DIR
    [ "${WASM_BY:-}" = debian ] && base=$TARGET_DIR/web
    printf '%s\n' "$base/$WASM_TARGET/wasm/qm_host_wasm.wasm"
}

# need_node: Node 20 or newer.
need_node() {
    need_command node "install Node 20 or newer"
    node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' ||
        die "Node $(node --version) is too old: 20 or newer is needed"
}

# need_playwright: Debian's Chromium, and the library that drives it as locked in scripts/e2e.
need_playwright() {
    need_node
    need_command npm "it comes with Node"
    [ -x /usr/bin/chromium ] || need_apt chromium fonts-liberation
    local stamp=$ROOT/scripts/e2e/node_modules/.locked
    cmp -s "$ROOT/scripts/e2e/package-lock.json" "$stamp" && return 0
    say "Installing playwright-core as locked in scripts/e2e"
    (cd "$ROOT/scripts/e2e" && npm ci --no-audit --no-fund --ignore-scripts --loglevel=error)
    cp "$ROOT/scripts/e2e/package-lock.json" "$stamp"
}
