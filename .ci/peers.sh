#!/usr/bin/env bash
# Talks with servers that nobody of this project wrote: two mock providers over all wires, one of which grades the
# client, and a real model behind llama.cpp, which also plays all roles of a small sweep; and with --gateway, where it can
# be installed, a LiteLLM proxy (350 MB). Loopback only, ports chosen by the system. Linux x86-64; needs python3.11, node, curl, cargo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD
tools=$root/target/ci-peers
work=$(mktemp -d)
declare -A pid_of
end() {
  for pid in "${pid_of[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$work"
}
trap end EXIT

step() { printf '\n== %s\n' "$*"; }
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
serve() { # NAME COMMAND...: in the background, its output in a file
  local name=$1
  shift
  "$@" >"$work/$name.log" 2>&1 &
  pid_of[$name]=$!
}
await() { # NAME URL: until something answers there
  for _ in $(seq 240); do
    curl -s -o /dev/null --max-time 2 "$2" && return 0
    kill -0 "${pid_of[$1]}" 2>/dev/null || break
    sleep 0.5
  done
  cat "$work/$1.log"
  echo "$1 does not answer"
  exit 1
}

step 'Tools'
if ! cmp -s .ci/peers/requirements.txt "$tools/requirements.txt" ||
  ! cmp -s .ci/peers/package-lock.json "$tools/node/package-lock.json"; then
  rm -rf "$tools"
  mkdir -p "$tools/node"
  python3 -m venv "$tools/python"
  "$tools/python/bin/pip" install --quiet --require-hashes --no-deps --only-binary=:all: -r .ci/peers/requirements.txt
  cp .ci/peers/package.json .ci/peers/package-lock.json "$tools/node/"
  (cd "$tools/node" && npm ci --silent --ignore-scripts --no-fund --no-audit)
  cp .ci/peers/requirements.txt "$tools/"
fi

step 'Servers'
aimock=$(port)
llmock=$(port)
llama=$(port)
serve aimock "$tools/node/node_modules/.bin/llmock" -h 127.0.0.1 -p "$aimock" -f .ci/peers/fixtures.json --strict \
  --log-level warn
serve llmock "$tools/python/bin/llmock" serve --host 127.0.0.1 --port "$llmock" --log-level warning
serve llama "$tools/python/bin/python" .ci/peers/llama.py "$llama"
await aimock "http://127.0.0.1:$aimock/v1/models"
await llmock "http://127.0.0.1:$llmock/_llmock/verdict"
await llama "http://127.0.0.1:$llama/health"
export VERA_GATE_AIMOCK=http://127.0.0.1:$aimock
export VERA_GATE_LLMOCK=http://127.0.0.1:$llmock
export VERA_GATE_LLAMA=http://127.0.0.1:$llama

# The raw replies once more from another program, where it lies beside the repository.
twin=${VERA_GATE_DATA:-../shared/data}/../tools/providers/canned.py
if [ -f "$twin" ]; then
  canned=$(port)
  serve canned python3 "$twin" "$canned"
  await canned "http://127.0.0.1:$canned/__cases"
  export VERA_GATE_CANNED=http://127.0.0.1:$canned
else
  echo "SKIPPED: $twin is not there"
fi

if [ "${1:-}" = --gateway ]; then
  # Pinned exactly: other releases of this package have been malicious. It sees no variable of ours.
  [ -x "$tools/gateway/bin/litellm" ] || {
    python3 -m venv "$tools/gateway"
    "$tools/gateway/bin/pip" install --quiet 'litellm[proxy]==1.106.12' || rm -rf "$tools/gateway"
  }
fi
if [ "${1:-}" = --gateway ] && [ ! -d "$tools/gateway" ]; then
  echo 'SKIPPED: the LiteLLM proxy cannot be installed here'
elif [ "${1:-}" = --gateway ]; then
  gateway=$(port)
  serve gateway env -i PATH="$PATH" HOME="$work" LITELLM_LOCAL_MODEL_COST_MAP=True LITELLM_TELEMETRY=False \
    "$tools/gateway/bin/litellm" --config "$root/.ci/peers/litellm.yaml" --host 127.0.0.1 --port "$gateway" \
    --telemetry False
  await gateway "http://127.0.0.1:$gateway/health/liveliness"
  export VERA_GATE_LITELLM=http://127.0.0.1:$gateway
fi

step 'Conversations'
cargo test --quiet --test it providers::peers -- --nocapture

step 'A sweep whose three roles a real model plays'
gate=$root/target/debug/vera-gate
role() { printf '%s: { model: llama-cpp/smollm2, base_url: "%s/v1", timeout: 200s, max_output_tokens: %s }\n' "$1" "$VERA_GATE_LLAMA" "$2"; }
{
  role user 24
  role candidate 24
  role judge 80
  cat <<END
target: $root/.ci/peers/target
sweep: { max_messages: 6, resamples: 4, curtail: never }
judging: { reasks: 1 }
concurrency: { calls: 4 }
gate: { thresholds: $root/.ci/peers/thresholds.yaml }
END
} >"$work/sweep.yaml"
code=0
timeout --preserve-status 420 "$gate" run --config "$work/sweep.yaml" --run "$work/swept" --record "$work/tape.jsonl" || code=$?
checked=$("$tools/python/bin/python" .ci/peers/sweep.py "$work/swept" "$code")
echo "$checked"
# The folder is judged again and shown again, and the recording gives the same ratings without the server.
kill "${pid_of[llama]}"
unset 'pid_of[llama]'
again=0
"$gate" gate "$work/swept" --config "$work/sweep.yaml" >/dev/null || again=$?
[ "$again" -eq "$code" ]
"$gate" report "$work/swept" --format json | cmp - "$work/swept/report.json"
[[ $checked != SKIPPED* ]] || exit 0
again=0
"$gate" run --quiet --config "$work/sweep.yaml" --run "$work/replayed" --replay "$work/tape.jsonl" >/dev/null || again=$?
[ "$again" -eq "$code" ]
cmp "$work/swept/ratings.jsonl" "$work/replayed/ratings.jsonl"
for name in "$work"/swept/conversations/*; do cmp "$name" "$work/replayed/conversations/${name##*/}"; done
echo 'replayed without the server: the same conversations and ratings'
