#!/usr/bin/env python3
"""Compares the calls that codegraph (npm: @colbymchenry/codegraph) finds with the
facts that run.py left in a directory. Callers and callees count as the same if
file and last name are, since codegraph names nested ones differently.

usage: codegraph.py CODEGRAPH DIRECTORY
"""

import glob
import json
import os
import shutil
import sqlite3
import subprocess
import sys

EDGES = """select s.file_path, case s.kind when 'file' then '' else s.name end, t.file_path, t.name
from edges e join nodes s on s.id = e.source join nodes t on t.id = e.target where e.kind = ?"""


def last(name):
    return name.split(".")[-1]


def facts(name):
    """The calls of a file of facts, and what is unknown of each caller."""
    calls, callers = set(), {}
    with open(name, encoding="utf-8") as f:
        for line in f:
            fact = json.loads(line)
            caller = (fact.get("file", ""), last(fact.get("name", "")))
            if fact["kind"] == "call":
                calls.add((*caller, fact["to"], last(fact["toName"])))
            elif fact["kind"] == "caller":
                callers.setdefault(caller, set()).update(fact.get("unknown") or [])
    return calls, callers


def main():
    program, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    env = dict(os.environ, HOME=os.path.join(work, "home"), CODEGRAPH_TELEMETRY="0", CODEGRAPH_NO_DAEMON="1")
    for name in sorted(glob.glob(os.path.join(work, "*.jsonl"))):
        tree = name.removesuffix(".jsonl")
        copy = tree + ".codegraph"
        if not os.path.isdir(copy):
            shutil.copytree(tree, copy)
            subprocess.run([program, "init", "."], cwd=copy, env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        with sqlite3.connect(glob.glob(os.path.join(copy, ".codegraph", "*.db"))[0]) as db:
            found = set(db.execute(EDGES, ("calls",)))
            made = set(db.execute(EDGES, ("instantiates",)))
        calls, callers = facts(name)
        judged = [e for e in found if e[:2] in callers and (e in calls or e[3] not in callers[e[:2]])]
        right = sum(e in calls for e in judged)
        known = sum(c in found or c in made for c in calls)
        print(f"{os.path.basename(tree)}: precision {right / max(1, len(judged)):.4f} of {len(judged)}, recall {known / max(1, len(calls)):.4f} of {len(calls)}")


main()
