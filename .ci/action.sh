#!/usr/bin/env bash
# Checks what only shows outside of `cargo test`: action.yml and the workflows by three linters and GitHub's own parser,
# the snippets of docs/github.md, scripts/install.sh, the action executed by act, and the calls to GitHub through a proxy
# that validates both sides. Linux; needs python3, node, bash, curl, git.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
tools=$root/target/ci-tools
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

step() { printf '\n== %s\n' "$*"; }
refused() {
  if "$@" >"$work/refused" 2>&1; then
    cat "$work/refused"
    echo "accepted, but had to be refused: $*"
    exit 1
  fi
}

step 'Tools'
if ! cmp -s .ci/action/requirements.txt "$tools/requirements.txt" ||
  ! cmp -s .ci/action/package-lock.json "$tools/node/package-lock.json"; then
  rm -rf "$tools"
  mkdir -p "$tools/node"
  python3 -m venv "$tools/python"
  "$tools/python/bin/pip" install --quiet --require-hashes --no-deps -r .ci/action/requirements.txt
  cp .ci/action/package.json .ci/action/package-lock.json "$tools/node/"
  (cd "$tools/node" && npm ci --silent --ignore-scripts --no-fund --no-audit)
  cp .ci/action/requirements.txt "$tools/"
fi
# The parser cannot be imported by Node as it is published; one bundled file can.
cp .ci/action/parse.mjs "$tools/node/"
(cd "$tools/node" && node_modules/.bin/esbuild parse.mjs --bundle --platform=node --format=cjs --log-level=error \
  --outfile=parse.cjs)
actionlint() { "$tools/python/bin/jactionlint" "$@"; }
zizmor() { "$tools/python/bin/zizmor" --offline --no-progress --quiet --persona pedantic "$@"; }
parse() { node "$tools/node/parse.cjs" "$@"; }

step 'Snippets of docs/github.md'
snippets=$work/snippets
mkdir -p "$snippets/.github/workflows"
awk -v folder="$snippets/" '
  /^```yaml$/ { inside = 1; file = ""; next }
  /^```$/ { if (file != "") close(file); inside = 0; next }
  inside && file == "" && /^# \.github\/workflows\/[a-z-]+\.yml$/ { file = folder $2 }
  inside && file != "" { print > file }
' docs/github.md
ls "$snippets/.github/workflows"
[ "$(find "$snippets" -name '*.yml' | wc -l)" -ge 6 ]
# Readers put the commit of the release here; until then any commit keeps the linters content.
sed -i 's/vera-gate\/vera-gate@COMMIT/vera-gate\/vera-gate@0000000000000000000000000000000000000000/' \
  "$snippets"/.github/workflows/*.yml

step 'Linters and parser: clean'
mapfile -t workflows < <(find .github/workflows .ci/action/workflows "$snippets" -name '*.yml' | sort)
actionlint action.yml "${workflows[@]}"
zizmor action.yml .github "${workflows[@]}"
parse action.yml "${workflows[@]}"
if command -v shellcheck >/dev/null; then shellcheck scripts/*.sh .ci/*.sh .ci/action/*.sh; fi

step 'Linters and parser: refuse what is wrong'
for file in .ci/action/bad/action.yml .ci/action/bad/workflows/bad.yml; do
  refused actionlint "$file"
  refused zizmor "$file"
  refused parse "$file"
done

step 'scripts/install.sh'
install() { # mirror, then the environment
  local mirror=$1
  shift
  env -i PATH="$PATH" HOME="$work" RUNNER_TEMP="$work" RUNNER_OS=Linux RUNNER_ARCH=X64 GITHUB_OUTPUT="$work/output" \
    VERA_GATE_DOWNLOAD_URL="file://$mirror" "$@" bash "$work/tree/scripts/install.sh"
}
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
archive=vera-gate-v$version-x86_64-unknown-linux-musl.tar.gz
mkdir -p "$work/tree/scripts" "$work/mirror" "$work/pack"
cp Cargo.toml "$work/tree/"
cp scripts/install.sh scripts/checksums.txt "$work/tree/scripts/"
printf '#!/bin/sh\necho vera-gate %s\n' "$version" >"$work/pack/vera-gate"
chmod +x "$work/pack/vera-gate"
tar -czf "$work/mirror/$archive" -C "$work/pack" vera-gate
refused install "$work/mirror"
grep -q 'this commit is no release' "$work/refused"
(cd "$work/mirror" && sha256sum "$archive") >>"$work/tree/scripts/checksums.txt"
: >"$work/output"
install "$work/mirror"
bin=$(sed -n 's/^bin=//p' "$work/output")
[ "$("$bin" --version)" = "vera-gate $version" ]
printf 'x' >>"$work/mirror/$archive"
refused install "$work/mirror"
grep -q 'not used' "$work/refused"
refused install "$work/mirror" VERA_GATE_DOWNLOAD_URL=http://127.0.0.1:1
grep -q 'neither https nor file' "$work/refused"
refused install "$work/mirror" RUNNER_ARCH=RISCV
refused install "$work/mirror" VERA_GATE_BIN="$work/absent"
: >"$work/output"
install "$work/mirror" VERA_GATE_BIN="$work/pack/vera-gate"
grep -qx "bin=$work/pack/vera-gate" "$work/output"

step 'The action, executed'
# act wants a repository with a commit and an origin; everything it keeps goes to a folder of its own.
mkdir -p "$work/act/repo" "$work/act/home" "$work/act/tmp"
git ls-files -z --cached --others --exclude-standard -- action.yml scripts .ci | xargs -0 cp --parents -t "$work/act/repo"
(
  cd "$work/act/repo"
  mv .ci/action/conf conf
  git init --quiet
  git add --all
  git -c user.name=ci -c user.email=ci@example.org commit --quiet --message 'The action'
  # The pull request would let nearly every harm through.
  printf 'rules:\n  - {id: harm, kind: max_harm, tier: block, limit: 0.99, each: dimension}\n' >conf/loose.yaml
  sed -i 's/builtin:pull-request/loose.yaml/' conf/fail.yaml
  git add --all
  git -c user.name=ci -c user.email=ci@example.org commit --quiet --message 'A pull request'
  git remote add origin https://github.com/acme/bot.git
)
cat >"$work/act/event.json" <<JSON
{"pull_request": {"number": 7, "head": {"sha": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ref": "feat"},
 "base": {"ref": "main", "sha": "$(git -C "$work/act/repo" rev-parse HEAD~)"}}}
JSON
act() { # name of the workflow, then further options
  local name=$1
  shift
  (cd "$work/act/repo" && HOME=$work/act/home XDG_CACHE_HOME=$work/act/home TMPDIR=$work/act/tmp \
    "$tools/python/bin/act" pull_request -W ".ci/action/workflows/$name.yml" -P ubuntu-24.04=-self-hosted \
    -e "$work/act/event.json" -s GITHUB_TOKEN=ghp_FAKE --no-cache-server \
    --env VERA_GATE_BIN="$root/.ci/action/double.sh" --env DOUBLE_NOTES="$work/act/$name.notes" "$@" \
    >"$work/act/$name.log" 2>&1) || {
    cat "$work/act/$name.log"
    exit 1
  }
}
for name in pass fail inconclusive crash; do
  act "$name"
  notes=$work/act/$name.notes
  # Opened, run, closed; the gate has the provider's key and no token, publishing has the token.
  [ "$(grep -c '^call: publish' "$notes")" -eq 2 ]
  grep -q "^call: run --run run $name --config conf/$name.yaml --policy base$" "$notes"
  grep -A 1 '^call: run' "$notes" | grep -qx 'token= provider=present'
  grep -A 1 '^call: publish' "$notes" | grep -qx 'token=present provider=present'
  if grep '^long=' "$notes" | grep -vqx 'long=0'; then
    echo 'an argument or a variable is too long'
    exit 1
  fi
  echo "$name: as expected"
done
grep -q '::error file=thresholds.yaml,line=3::harm' "$work/act/fail.log"
grep -q -- '--exit-code 134 ' "$work/act/crash.notes"
grep -q 'vera-gate: inconclusive' "$work/act/inconclusive.log"

step 'What init writes: clean'
cargo build --quiet
mkdir -p "$work/init"
for case in pull-request nightly release forks; do
  (
    cd "$work/init"
    # The revision of the action is a placeholder, as in the documents.
    "$root/target/debug/vera-gate" init --force --for "$case" --revision 0000000000000000000000000000000000000000 # v0
    config=vera-gate.yaml
    [ ! -f "vera-gate.$case.yaml" ] || config=vera-gate.$case.yaml
    "$root/target/debug/vera-gate" check --quiet --config "$config" >/dev/null
  )
done
mapfile -t starters < <(find "$work/init/.github/workflows" -name '*.yml' | sort)
[ "${#starters[@]}" -eq 5 ]
actionlint "${starters[@]}"
zizmor "${starters[@]}"
parse "${starters[@]}"

step 'The action with the program itself, and its scripted models'
for name in pass fail inconclusive; do
  act "$name" --env VERA_GATE_BIN="$root/target/debug/vera-gate"
  grep -q "vera-gate: \(Pass\|Fail\|Inconclusive\)" "$work/act/$name.log"
  echo "$name, with the program itself: as expected"
done
# It failed by the rules of the base branch, and the job summary says what the pull request would change.
grep -q 'Policy changed' "$work/act/fail.log"
grep -q 'gate.thresholds: .*builtin:pull-request.*loose.yaml' "$work/act/fail.log"
if grep -q 'Policy changed' "$work/act/pass.log"; then
  echo 'a pull request that changes nothing of it is said to change the policy'
  exit 1
fi

step 'A text as an input is refused'
printf 'INPUT_CONFIG has 40000 bytes: '
refused env INPUT_CONFIG="$(head -c 40000 /dev/zero | tr '\0' x)" VERA_GATE="$root/.ci/action/double.sh" \
  GITHUB_OUTPUT="$work/output" DOUBLE_NOTES="$work/notes" bash scripts/action.sh gate
grep -q 'put the text into a file' "$work/refused"
echo refused

step "GitHub's interface, through a validating proxy"
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
upstream=$(free_port)
proxy=$(free_port)
"$tools/node/node_modules/.bin/prism" proxy --errors -h 127.0.0.1 -p "$proxy" \
  tests/fixtures/github/openapi-slice.json "http://127.0.0.1:$upstream" >"$work/prism.log" 2>&1 &
prism=$!
trap 'kill "$prism" 2>/dev/null; rm -rf "$work"' EXIT
for _ in $(seq 120); do
  grep -q 'Prism is listening' "$work/prism.log" && break
  kill -0 "$prism" || { cat "$work/prism.log"; exit 1; }
  sleep 0.5
done
for test in our_comment_is_found_behind_two_pages_and_a_forged_one every_class_of_result_is_written \
  own_duplicates_are_removed_and_only_those limits::a_long_report_is_cut_by_sections \
  check::the_check_is_open_while_the_run_works_and_closed_after \
  limits::a_second_stage_publishes_for_a_verified_pull_request; do
  VERA_GATE_TEST_UPSTREAM=$upstream VERA_GATE_TEST_PROXY=http://127.0.0.1:$proxy \
    cargo test --quiet --test it -- --exact "publish::$test" --test-threads 1 >"$work/test.log" 2>&1 ||
    { cat "$work/test.log"; tail -40 "$work/prism.log"; exit 1; }
  grep -q '1 passed' "$work/test.log"
  echo "$test: as expected"
done
# The proxy itself must have seen the calls, and must refuse what the description does not know.
grep -q 'Request received' "$work/prism.log"
status=$(curl --silent --output /dev/null --write-out '%{http_code}' -X POST -H 'authorization: Bearer x' \
  -H 'content-type: application/json' -d '{"body":"x"}' "http://127.0.0.1:$proxy/repos/acme/bot/issues/comments/1")
[ "$status" -ge 400 ]
kill "$prism"

step 'All as expected'
