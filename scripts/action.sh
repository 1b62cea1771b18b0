#!/usr/bin/env bash
# One step of the action: start, gate or finish. Everything comes through the environment, nothing is spliced into
# this text, and texts of unknown length are handed on as files.
set -euo pipefail

longest=32768

fail() {
  local text=$1
  text=${text//'%'/'%25'}
  text=${text//$'\r'/'%0D'}
  text=${text//$'\n'/'%0A'}
  printf '::error title=vera-gate::%s\n' "$text"
  exit 2
}

for name in $(compgen -v INPUT_); do
  if [ "${#name}" -gt 0 ] && [ "$(printf %s "${!name}" | wc -c)" -gt "$longest" ]; then
    fail "the input ${name#INPUT_} has more than $longest bytes: put the text into a file and give its path"
  fi
done

[ -x "${VERA_GATE:-}" ] || fail "the program is not installed: ${VERA_GATE:-no path}"
folder=${INPUT_RUN_FOLDER:-vera-gate-run}

case "${INPUT_PUBLISH:-all}" in
  all | summary | none) ;;
  *) fail "the input publish is none of all, summary and none: ${INPUT_PUBLISH}" ;;
esac

# The base branch's policy is read from its commit. A shallow checkout lacks it; without it the gate refuses to run.
# GitHub's merge commit names the commit it was made with, which can be newer than the one that the event names.
fetch_base() {
  local base=${BASE_SHA:-} parents
  [[ $base =~ ^[0-9a-f]{40,64}$ ]] || return 0
  parents=$(git cat-file commit "${GITHUB_SHA:-HEAD}" 2>/dev/null | sed -n '/^$/q; s/^parent //p') || parents=
  if [ -n "${HEAD_SHA:-}" ] && [ "$(wc -l <<<"$parents")" -eq 2 ] && [ "${parents##*$'\n'}" = "$HEAD_SHA" ]; then
    base=${parents%%$'\n'*}
  fi
  git cat-file -e "${base}^{commit}" 2>/dev/null && return 0
  local header
  header="AUTHORIZATION: basic $(printf 'x-access-token:%s' "${INPUT_GITHUB_TOKEN:-}" | base64 | tr -d '\n')"
  GIT_TERMINAL_PROMPT=0 GIT_CONFIG_COUNT=1 \
    GIT_CONFIG_KEY_0="http.${GITHUB_SERVER_URL:-https://github.com}/.extraheader" GIT_CONFIG_VALUE_0="$header" \
    git fetch --quiet --no-tags --depth=1 origin "$base" 2>/dev/null ||
    printf '::notice title=vera-gate::%s\n' "the base commit $base cannot be fetched; use fetch-depth: 0 in the checkout"
}

publish() {
  local args=(publish "$@" --comment-id "${INPUT_COMMENT_ID:-default}" --check-name "${INPUT_CHECK_NAME:-vera-gate}")
  [ -z "${INPUT_COMMENT_AUTHOR:-}" ] || args+=(--comment-author "$INPUT_COMMENT_AUTHOR")
  [ -z "${INPUT_CONFIG:-}" ] || args+=(--config "$INPUT_CONFIG")
  [ -z "${INPUT_POLICY:-}" ] || args+=(--policy "$INPUT_POLICY")
  [ -z "${INPUT_HAND_OVER:-}" ] || args+=(--hand-over "$INPUT_HAND_OVER")
  args+=(--to "${INPUT_PUBLISH:-all}")
  GITHUB_TOKEN="${INPUT_GITHUB_TOKEN:-}" "$VERA_GATE" "${args[@]}"
}

case "${1:-}" in
  start)
    fetch_base
    # What cannot be opened now is reported at the end; the gate runs all the same.
    publish --start "$folder" || printf '::warning title=vera-gate::%s\n' 'the check could not be opened'
    ;;
  gate)
    args=(run --run "$folder")
    [ -z "${INPUT_CONFIG:-}" ] || args+=(--config "$INPUT_CONFIG")
    [ -z "${INPUT_THRESHOLDS:-}" ] || args+=(--thresholds "$INPUT_THRESHOLDS")
    [ -z "${INPUT_BASELINE:-}" ] || args+=(--baseline "$INPUT_BASELINE")
    [ -z "${INPUT_POLICY:-}" ] || args+=(--policy "$INPUT_POLICY")
    [ -z "${INPUT_SHARD:-}" ] || args+=(--shard "$INPUT_SHARD")
    [ "${INPUT_PWN:-false}" != true ] || args+=(--i-accept-pwn-risk)
    code=0
    "$VERA_GATE" "${args[@]}" || code=$?
    # The last step decides; here the code is only handed on, so that publishing always follows.
    printf 'code=%s\n' "$code" >>"$GITHUB_OUTPUT"
    ;;
  finish)
    # No code means that the step before was killed.
    code=${GATE_CODE:-70}
    result=0
    publish "$folder" --exit-code "$code" || result=$?
    # Publishing never makes a result better, even if the program is broken.
    if [ "$code" -ne 0 ] && [ "$result" -eq 0 ]; then result=$code; fi
    exit "$result"
    ;;
  *)
    fail "unknown step: ${1:-none}"
    ;;
esac
