#!/usr/bin/env bash
# Puts the vera-gate of this very version in place and writes its path to the output `bin`.
#
#   VERA_GATE_BIN            a program that is there already: air-gapped runners, tests
#   INPUT_INSTALL=release    download, SHA-256 from scripts/checksums.txt of this tree, attestation when gh can check it
#   INPUT_INSTALL=source     cargo builds this tree
#   VERA_GATE_DOWNLOAD_URL   a mirror (https or file) of the release folder; the SHA-256 is the same
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
say() { printf '%s\n' "vera-gate: $*"; }
fail() {
  printf '::error title=vera-gate::%s\n' "$*"
  exit 2
}
done_with() {
  say "$("$1" --version) at $1"
  printf 'bin=%s\n' "$1" >>"${GITHUB_OUTPUT:-/dev/stdout}"
  # For later steps of the job, such as `vera-gate merge`.
  [ -z "${GITHUB_PATH:-}" ] || dirname "$1" >>"$GITHUB_PATH"
  exit 0
}

if [ -n "${VERA_GATE_BIN:-}" ]; then
  [ -x "$VERA_GATE_BIN" ] || fail "VERA_GATE_BIN is not a program that can be run: $VERA_GATE_BIN"
  done_with "$VERA_GATE_BIN"
fi

field() { sed -n "s/^$1 = \"\\([^\"]*\\)\"$/\\1/p" "$here/Cargo.toml" | head -n 1; }
version=$(field version)
repository=$(field repository)
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || fail "Cargo.toml names no version"
work=$(mktemp -d "${RUNNER_TEMP:-/tmp}/vera-gate.XXXXXX")
cd "$work"

case "${INPUT_INSTALL:-release}" in
  release) ;;
  source)
    command -v cargo >/dev/null || fail 'install: source needs cargo on the runner'
    cargo install --locked --path "$here" --root "$work"
    done_with "$work/bin/vera-gate"
    ;;
  *) fail "the input install is neither release nor source: $INPUT_INSTALL" ;;
esac

system="${RUNNER_OS:-$(uname -s)}-${RUNNER_ARCH:-$(uname -m)}"
suffix=''
case "$system" in
  Linux-X64 | Linux-x86_64) target=x86_64-unknown-linux-musl ;;
  Linux-ARM64 | Linux-aarch64) target=aarch64-unknown-linux-musl ;;
  macOS-X64 | Darwin-x86_64) target=x86_64-apple-darwin ;;
  macOS-ARM64 | Darwin-arm64) target=aarch64-apple-darwin ;;
  Windows-X64) target=x86_64-pc-windows-msvc suffix=.exe ;;
  *) fail "there is no binary for $system: use install: source or VERA_GATE_BIN" ;;
esac

archive="vera-gate-v$version-$target.tar.gz"
# The table is part of this commit, so whoever pins the action by commit pins the binary too.
want=$(awk -v name="$archive" '$2 == name { print $1 }' "$here/scripts/checksums.txt")
[[ $want =~ ^[0-9a-f]{64}$ ]] ||
  fail "scripts/checksums.txt has no SHA-256 of $archive: this commit is no release. Use the tag v$version, or install: source"

url="${VERA_GATE_DOWNLOAD_URL:-$repository/releases/download/v$version}/$archive"
case "$url" in
  https://*) protocols='=https' ;;
  file://*) protocols='=file' ;;
  *) fail "the download address is neither https nor file: $url" ;;
esac
say "downloading $url"
curl --fail --silent --show-error --location --proto "$protocols" --proto-redir '=https' --retry 3 --max-time 300 \
  --output "$archive" "$url" || fail "cannot download $url"

if command -v sha256sum >/dev/null; then
  have=$(sha256sum "$archive" | cut -d ' ' -f 1)
else
  have=$(shasum -a 256 "$archive" | cut -d ' ' -f 1)
fi
if [ "$have" != "$want" ]; then
  rm -f "$archive"
  fail "$archive has SHA-256 $have, but this commit wants $want: not used"
fi

# A second lock, where it can be checked: who built it.
if [ "${GITHUB_SERVER_URL:-https://github.com}" = https://github.com ] && [ -n "${INPUT_GITHUB_TOKEN:-}" ] &&
  [ -z "${VERA_GATE_DOWNLOAD_URL:-}" ] && command -v gh >/dev/null && gh attestation --help >/dev/null 2>&1; then
  GH_TOKEN=$INPUT_GITHUB_TOKEN gh attestation verify "$archive" --repo "${repository#https://github.com/}" >/dev/null ||
    fail "$archive has the right SHA-256, but its attestation cannot be verified: not used"
  say 'SHA-256 and attestation are right'
else
  say 'SHA-256 is right'
fi

tar -xzf "$archive" "vera-gate$suffix"
rm -f "$archive"
chmod +x "vera-gate$suffix"
done_with "$work/vera-gate$suffix"
