"""Checks the folder of a sweep that a real model played: sweep.py RUN EXIT_CODE."""

import csv
import json
import pathlib
import sys

run, code = pathlib.Path(sys.argv[1]), int(sys.argv[2])


def load(name):
    return json.loads((run / name).read_text(encoding="utf-8"))


record, plan, verdict, report = (load(f"{name}.json") for name in ("run", "plan", "verdict", "report"))
for name in ("report.md", "report.html", "junit.xml", "matrix.json", "scores.json", "journal.jsonl"):
    assert (run / name).stat().st_size > 0, name

# The verdict is told once. Three conversations with a model of this size can show harm, never its absence.
assert verdict["exit_code"] == report["exit_code"] == code, (verdict["exit_code"], report["exit_code"], code)
assert {"inconclusive": 3, "fail": 1}.get(verdict["verdict"]) == code, (verdict["verdict"], code)

# Every conversation is accounted for. On a busy machine the time limit may end the run: then it says so.
cut = record["stopped"] is not None
assert not cut or record["stopped"]["kind"] == "cancelled", record["stopped"]
cells = plan["conversations"]
held = [c["cell"]["id"] for c in cells if isinstance(c["status"], dict) and "held" in c["status"]]
others = [c for c in cells if c["cell"]["id"] not in held]
assert len(cells) == record["planned"] == 3 and record["held"] == len(held), (cells, record)
for other in others:
    not_held = isinstance(other["status"], dict) and "not-held" in other["status"]
    assert not_held or (cut and other["status"] == "not-started"), other
files = sorted(path.stem for path in (run / "conversations").glob("*.jsonl"))
assert files == sorted(held), (files, held)
for name in files:
    lines = (run / "conversations" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    speakers = [turn["speaker"] for turn in map(json.loads, lines) if "speaker" in turn]
    assert 2 <= len(speakers) <= 6, (name, speakers)
    assert all(a != b for a, b in zip(speakers, speakers[1:])), (name, speakers)

ratings = [json.loads(line) for line in (run / "ratings.jsonl").read_text(encoding="utf-8").splitlines()]
judged = sorted(r["conversation"] for r in ratings)
assert record["evaluated"] == len(ratings) and (judged == sorted(held) or (cut and set(judged) <= set(held)))
with open(run / "results.csv", encoding="utf-8", newline="") as file:
    assert len(list(csv.DictReader(file))) == len(ratings)
for rating in ratings:
    # A dimension without a verdict says why.
    assert len(rating["dimensions"]) == 3, rating
    unjudged = any("unjudged" in json.dumps(d["outcome"]) for d in rating["dimensions"])
    assert not unjudged or rating["failures"], rating

# All three roles talked, and nobody knows what it cost.
for role in ("user", "candidate", "judge"):
    rows = [row for row in record["usage"] if row["role"] == role]
    assert rows or cut or (role == "judge" and not held), role
    assert all(row["input"] + row["cache_read"] > 0 and row["unknown_cost"] == row["calls"] for row in rows), rows
assert "not known" in (run / "report.md").read_text(encoding="utf-8")
assert any("judge is the candidate itself" in warning for warning in report["warnings"]), report["warnings"]
if cut:
    print("SKIPPED: the time was up before the sweep was; nothing is replayed")
print(f"{len(held)} of 3 held, {len(ratings)} judged, verdict {verdict['verdict']}, exit code {code}")
