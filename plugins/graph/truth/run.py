#!/usr/bin/env python3
"""Compares the graph of pinned public sources with what reference parsers know of
them, and writes the tables in docs/graph.md.

usage: run.py AGENT DIRECTORY [NAME…]

AGENT is the program, DIRECTORY a place for what is downloaded and for the facts of
the references, which are kept; NAMEs select some of the sources and write no table. It needs Go, npm, Node.js, a JDK, rustc 1.95, and from Debian
python3-jedi and python3-clang with its libclang.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
DOCS = os.path.join(HERE, "../../../docs/graph.md")
DEBIAN = "http://deb.debian.org/debian/pool/main/"
PYTHON = "/usr/bin/python3"  # Debian's packages belong to it

# Name, language, reference, where it comes from, its hash, and what is read of it.
SOURCES = [
    ("cobra 1.10.2", "Go", "golang", "github.com/spf13/cobra@v1.10.2", "", "."),
    ("goldmark 1.8.7", "Go", "golang", "github.com/yuin/goldmark@v1.8.7", "", "."),
    ("chi 5.2.3", "Go", "golang", "github.com/go-chi/chi/v5@v5.2.3", "", "."),
    ("requests 2.28.1", "Python", "python", "r/requests/python3-requests_2.28.1+dfsg-1_all.deb",
     "c75b5c05d8d4a813bd83c3d432ffe65a2ca13e771bc91d4b9787690097598603", "usr/lib/python3/dist-packages"),
    ("flask 2.2.2", "Python", "python", "f/flask/python3-flask_2.2.2-3_all.deb",
     "2c8c9a408c2373d8b42f0d3434f17fc1a710bc81e52273b96597b25c57b399d7", "usr/lib/python3/dist-packages"),
    ("jinja2 3.1.2", "Python", "python", "j/jinja2/python3-jinja2_3.1.2-1+deb12u3_all.deb",
     "914e3a26742b488bca661dd12dc06198262c3a99b68f2f20ef7310aecdf82cae", "usr/lib/python3/dist-packages"),
    ("lodash 4.17.21", "JavaScript", "javascript", "lodash@4.17.21", "", "."),
    ("express 5.1.0", "JavaScript", "javascript", "express@5.1.0", "", "."),
    ("rxjs 7.8.2", "TypeScript", "javascript", "rxjs@7.8.2", "", "src"),
    ("zod 4.1.12", "TypeScript", "javascript", "zod@4.1.12", "", "src"),
    ("jsoup 1.15.3", "Java", "java", "j/jsoup/jsoup_1.15.3.orig.tar.xz",
     "052511f0be47511f9b2a17d44fc1eccc4b5373e77cc5a3221e34b6af437e1e2e", "src/main/java"),
    ("commons-lang 3.12.0", "Java", "java", "libc/libcommons-lang3-java/libcommons-lang3-java_3.12.0.orig.tar.xz",
     "f7c22574707611b63bae19ff17f59e24cdd32e2b0e61a50ec9b1b525fbc909d1", "src/main/java"),
    ("semver 1.0.14", "Rust", "rust", "r/rust-semver/librust-semver-dev_1.0.14-1_amd64.deb",
     "bf3719b7aac4b7f16f0d68a7037306dbc1532758fe7a5dea01254e85cecaca8c", "usr/share/cargo/registry/semver-1.0.14"),
    ("bytes 1.2.1", "Rust", "rust", "r/rust-bytes/librust-bytes-dev_1.2.1-1_amd64.deb",
     "86fbba5fe9d10f1eeb28944e52cfc8caa75f9a509c3603b70f8107f151744fcc", "usr/share/cargo/registry/bytes-1.2.1"),
    ("memchr 2.5.0", "Rust", "rust", "r/rust-memchr/librust-memchr-dev_2.5.0-1_amd64.deb",
     "9b0f9497acbf8d8e706181a248a31624c6215ce86353a972d19d0cf0252f4183", "usr/share/cargo/registry/memchr-2.5.0"),
    ("hashbrown 0.12.3", "Rust", "rust", "r/rust-hashbrown/librust-hashbrown-dev_0.12.3-1_amd64.deb",
     "86ca499697497d825a2e76f43648ad2d49cc65763964ff234ce32c4fc862f55f", "usr/share/cargo/registry/hashbrown-0.12.3"),
    ("regex-syntax 0.6.27", "Rust", "rust", "r/rust-regex-syntax/librust-regex-syntax-dev_0.6.27-1_amd64.deb",
     "16c9879e07d6f9c6b2618906126d17e51ec8b04bced0fe3bb0cf0f3062f8a353", "usr/share/cargo/registry/regex-syntax-0.6.27"),
    ("cJSON 1.7.15", "C and C++", "c", "c/cjson/cjson_1.7.15.orig.tar.gz",
     "5308fd4bd90cef7aa060558514de6a1a4a0819974a26e6ed13973c5f624c24b2", "."),
    ("tinyxml2 9.0.0", "C and C++", "c", "t/tinyxml2/tinyxml2_9.0.0+dfsg.orig.tar.xz",
     "96510f47a5db537f70dff3e83dd71fd2180cbba4aa76c589a549467e7f34bc9b", "."),
]

# How the crates are compiled: with tests where they need no other crate.
RUSTC = {
    "semver-1.0.14": "--edition=2018 --crate-name=semver --test",
    "bytes-1.2.1": "--edition=2018 --crate-name=bytes --test --cfg=feature=\"std\"",
    "memchr-2.5.0": "--edition=2018 --crate-name=memchr --crate-type=lib --cfg=feature=\"std\" --cfg=memchr_runtime_simd"
                    " --cfg=memchr_runtime_sse2 --cfg=memchr_runtime_sse42 --cfg=memchr_runtime_avx",
    "hashbrown-0.12.3": "--edition=2021 --crate-name=hashbrown --crate-type=lib --cfg=feature=\"raw\"",
    "regex-syntax-0.6.27": "--edition=2018 --crate-name=regex_syntax --test" + "".join(
        f' --cfg=feature="unicode{part}"' for part in ("", "-age", "-bool", "-case", "-gencat", "-perl", "-script", "-segment")),
}


def call(*args, **more):
    return subprocess.run(args, check=True, stdout=subprocess.PIPE, **more).stdout


def fetch(work, name, kind, source, digest, part):
    """Brings a source and returns the directory to read."""
    raw, tree = (os.path.join(work, name.replace(" ", "-") + end) for end in ("-raw", ""))
    if os.path.isdir(tree):
        return tree
    os.makedirs(raw, exist_ok=True)
    if kind == "golang":
        found = json.loads(call("go", "mod", "download", "-json", source, cwd=os.path.join(HERE, "golang")))
        shutil.copytree(found["Dir"], raw, dirs_exist_ok=True)
        call("chmod", "-R", "u+w", raw)
    elif kind == "javascript":
        archive = call("npm", "pack", "--silent", source, cwd=work, text=True).strip()
        call("tar", "xf", os.path.join(work, archive), "-C", raw, "--strip", "1")
    else:
        data = urllib.request.urlopen(DEBIAN + source).read()
        if hashlib.sha256(data).hexdigest() != digest:
            sys.exit(f"{source}: its content is not what was pinned")
        archive = os.path.join(work, os.path.basename(source))
        with open(archive, "wb") as f:
            f.write(data)
        if source.endswith(".deb"):
            call("dpkg-deb", "-x", archive, raw)
        else:
            call("tar", "xf", archive, "-C", raw, "--strip", "1")
    keep = shutil.ignore_patterns("test*") if kind == "c" else None
    shutil.copytree(os.path.join(raw, part), tree, ignore=keep)
    shutil.rmtree(raw)
    return tree


def reference(work, kind, tree):
    """Returns the command that prints the facts of a directory."""
    if kind == "golang":
        tool = os.path.join(work, "golang-reference")
        call("go", "build", "-o", tool, ".", cwd=os.path.join(HERE, "golang"))
        return [tool, tree]
    if kind == "python":
        return [PYTHON, os.path.join(HERE, "python.py"), tree]
    if kind == "javascript":
        modules = os.path.join(work, "node_modules")
        if not os.path.isdir(modules):
            call("npm", "install", "--no-save", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", work, "typescript@5.9.3")
        os.environ["NODE_PATH"] = modules
        return ["node", os.path.join(HERE, "javascript.js"), tree]
    if kind == "java":
        return ["java", "-Xmx1500m", os.path.join(HERE, "Reference.java"), tree]
    if kind == "rust":
        return [PYTHON, os.path.join(HERE, "rust.py"), tree, *RUSTC[os.path.basename(tree)].split()]
    include = call("gcc", "-print-file-name=include", text=True).strip()
    return [PYTHON, os.path.join(HERE, "c.py"), tree, "-I" + include]


def share(part, rest):
    if part + rest == 0:
        return "–"
    digits = f"{part / (part + rest):.4f}".rstrip("0").rstrip(".")
    return f"{digits} ({part + rest:,})"


def row(title, results):
    def precision(pick):
        scores = [pick(r) or {} for r in results]
        return share(sum(s.get("right", 0) for s in scores), sum(s.get("wrong", 0) for s in scores))

    def recall(pick):
        scores = [s for r in results for s in pick(r)]
        return share(sum(s["found"] for s in scores), sum(s["missed"] for s in scores))

    return "| " + " | ".join([
        title,
        precision(lambda r: r["definitions"]), recall(lambda r: [r["definitionsFound"]]),
        precision(lambda r: r["imports"]), recall(lambda r: [r["importsFound"]]),
        *(precision(lambda r, c=c: r["calls"].get(c)) for c in ("high", "medium", "low")),
        recall(lambda r: [s for how, s in r["callsFound"].items() if how == "static"]),
        recall(lambda r: [s for how, s in r["callsFound"].items() if how != "static"]),
    ]) + " |"


def questions_row(title, results):
    """Sums what several sources' answers hold; a row's tokens are the mean of their medians."""
    cells = [title]
    for question, way, *parts in QUESTIONS:
        ways = [w for r in results for w in r if (w["set"], w["question"], w["way"]) == ("plain", question, way)]
        cells.append(f"{sum(w['tokens'] for w in ways) / len(ways):,.0f}" if ways else "–")
        for part, good, bad in parts:
            got, rest = (sum(w[part][key] for w in ways) for key in (good, bad))
            cells.append(f"{got / (got + rest):.2f} ({got + rest:,})" if got + rest else "–")
    return "| " + " | ".join(cells) + " |"


HELD, RIGHT = ("held", "found", "missed"), ("right", "right", "wrong")
QUESTIONS = [
    ("who calls X", "grep", HELD, RIGHT), ("who calls X", "graph_query", HELD, RIGHT), ("who calls X", "context", HELD, RIGHT),
    ("what breaks if X changes", "grep", HELD), ("what breaks if X changes", "get_impact", HELD), ("what breaks if X changes", "context", HELD, RIGHT),
]
QUESTIONS_HEAD = [
    "Source", "calls, grep: tokens", "held", "right", "graph_query: tokens", "held", "right", "context: tokens", "held", "right",
    "breaks, grep: tokens", "held", "get_impact: tokens", "held", "context: tokens", "held", "right",
]


def write(marker, head, rows):
    """Replaces the table between two marks of the page."""
    with open(DOCS, encoding="utf-8") as f:
        text = f.read()
    before, rest = text.split(f"<!-- {marker} -->\n", 1)
    _, after = rest.split(f"<!-- end of {marker} -->\n", 1)
    table = ["| " + " | ".join(head) + " |", "| --- |" + " ---: |" * (len(head) - 1)] + rows
    with open(DOCS, "w", encoding="utf-8") as f:
        f.write(before + f"<!-- {marker} -->\n" + "\n".join(table) + f"\n<!-- end of {marker} -->\n" + after)


TRUTH_HEAD = ["Source", "definitions: precision", "recall", "imports: precision", "recall", "calls, high: precision", "medium", "low", "static calls: recall", "others: recall"]


def main():
    agent, work = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    chosen = sys.argv[3:]
    os.makedirs(work, exist_ok=True)
    home = dict(os.environ, HOME=os.path.join(work, "home"))
    os.makedirs(home["HOME"], exist_ok=True)
    results, asked = {}, []
    for name, language, kind, source, digest, part in SOURCES:
        if chosen and name.split()[0] not in chosen:
            continue
        tree = fetch(work, name, kind, source, digest, part)
        facts = tree + ".jsonl"
        if not os.path.exists(facts):
            with open(facts + ".part", "wb") as f:
                subprocess.run(reference(work, kind, tree), check=True, stdout=f)
            os.rename(facts + ".part", facts)
        result = json.loads(call(agent, "graph", "bench", "-C", tree, "--truth", facts, "--json", env=home))
        results.setdefault(language, []).append((name, result))
        answers = json.loads(call(agent, "graph", "bench", "-C", tree, "--truth", facts, "--questions", "40", "--json", env=home))
        asked.append((name, answers))
        print(row(name, [result]), questions_row(name, [answers]), sep="\n", flush=True)
    if chosen:
        return
    rows = []
    for language, list_ in results.items():
        rows += [row(f"**{language}**", [r for _, r in list_])]
        if len(list_) > 1:
            rows += [row(name, [r]) for name, r in list_]
        else:
            rows[-1] = row(f"**{language}**: {list_[0][0]}", [list_[0][1]])
    write("truth", TRUTH_HEAD, rows)
    write("questions", QUESTIONS_HEAD, [questions_row("**All**", [a for _, a in asked])] + [questions_row(name, [a]) for name, a in asked])


main()
