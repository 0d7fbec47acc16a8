"""Prints what rustc knows of a crate without dependencies, as reference facts for
"agent graph bench --truth": definitions as its parser reads them, imports and calls as
its type checker resolves them. What cfg leaves out is not known.

usage: rust.py DIRECTORY [RUSTC ARGUMENT…]
"""

import bisect
import json
import os
import re
import subprocess
import sys

SPAN = re.compile(r"span: (\S+?\.rs):(\d+):(\d+): (\d+):(\d+) \(#(\d+)\)")
DEF = r"DefId\(0:\d+ ~ [\w]+\[[0-9a-f]+\]((?:::[^()\s,]+)*)\)"
BODY = re.compile("^" + DEF + ":$")
OWNER = re.compile("^" + DEF + " => OwnerNodes")
CALLEE = re.compile(r"ty: FnDef\(DefId\(\d+:\d+ ~ (\w+)\[[0-9a-f]+\]((?:::[^()\s,]+)*)\), \[(.*)\]\)$")
RES = re.compile(r"^\s*" + DEF + ",$")
TYPES = {"Struct", "Enum", "Union", "Trait"}
seen = set()


def out(**fact):
    line = json.dumps(fact)
    if line not in seen:
        seen.add(line)
        print(line)


def rustc(root, path, print_, *args):
    """Yields the lines of what the compiler prints of a file."""
    command = ["rustc", "--cap-lints=allow", "-Zunpretty=" + print_, *args, path]
    p = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True, env=dict(os.environ, RUSTC_BOOTSTRAP="1"))
    for line in p.stdout:
        yield line.rstrip("\n")
    if p.wait():
        sys.exit(f"{' '.join(command)}: exit code {p.returncode}")


class Source:
    """A file and the definitions in it, by where they begin and end."""

    def __init__(self, root, path, edition):
        self.path = path
        with open(os.path.join(root, path), encoding="utf-8") as f:
            self.lines = f.read().split("\n")
        self.scopes = []  # (start, end, name, kind)
        stack = []
        for line in rustc(root, path, "ast-tree", edition):
            text = line.strip().rstrip(",")
            if text[-1:] in ("{", "(", "["):
                stack.append((text, {}))
            elif text[-1:] in ("}", ")", "]") and text in ("}", ")", "]"):
                head, fields = stack.pop()
                self.close(head, fields, stack)
            elif stack and ": " in text:
                key, value = text.split(": ", 1)
                stack[-1][1].setdefault(key, value if key != "span" else position(SPAN.match(text)))
            elif stack and re.fullmatch(r"\S+#\d+", text):
                stack[-1][1].setdefault("ident", text)
        self.scopes.sort(key=lambda s: (s[0], [-n for n in s[1]]))

    def close(self, head, fields, stack):
        """Notes an item when all of it was read; its parts were noted by their parents."""
        if not stack:
            return
        parent = stack[-1][1]
        kind = re.match(r"kind: (\w+)\($", head)
        if kind:
            parent.setdefault("kind", (kind[1], fields))
        elif head.endswith("self_ty: Ty {"):
            parent["self"] = fields.get("span")
        elif head in ("Fn {", "Impl {", "Trait {") or head.startswith("of_trait:"):
            parent.update({k: v for k, v in fields.items() if k in ("ident", "self", "trait")})
            if head.startswith("of_trait:"):
                parent["trait"] = fields.get("trait")
        elif head in ("TraitImplHeader {", "trait_ref: TraitRef {"):
            parent["trait"] = fields.get("trait")
        elif head == "path: Path {":
            parent["trait"] = fields.get("span")
        elif head == "Item {" and isinstance(fields.get("kind"), tuple) and fields.get("span"):
            self.item(*fields["kind"], fields["span"])

    def item(self, kind, fields, span):
        name = fields.get("ident", "").partition("#")[0].removeprefix("r#")
        if kind == "Impl" and fields.get("self"):
            name = type_name(self.text(*fields["self"]))
            trait = type_name(self.text(*fields["trait"])) if fields.get("trait") else ""
            self.scopes.append((*span, name, kind, trait))
        elif kind in TYPES | {"Fn", "Mod", "ForeignMod"}:
            self.scopes.append((*span, name, kind, ""))

    def text(self, start, end):
        (l1, c1), (l2, c2) = start, end
        if l1 == l2:
            return self.lines[l1 - 1][c1 - 1:c2 - 1]
        return "\n".join([self.lines[l1 - 1][c1 - 1:], *self.lines[l1:l2 - 1], self.lines[l2 - 1][:c2 - 1]])

    def around(self, start, end):
        """The scopes that contain a place, the outermost first."""
        last = bisect.bisect_right(self.scopes, (start, (1 << 30, 0)))
        return [s for s in self.scopes[:last] if s[0] <= start and end <= s[1]]

    def name(self, scopes):
        return ".".join(s[2] for s in scopes if s[2])

    def define(self):
        for s in self.scopes:
            around = self.around(s[0], s[1])
            if s[3] in TYPES | {"Fn"} and not any(a[3] == "ForeignMod" for a in around):
                out(kind="definition", file=self.path, name=self.name(around))


def position(m):
    return m and ((int(m[2]), int(m[3])), (int(m[4]), int(m[5])))


def type_name(text):
    """The name of a type as it is written, without references and arguments."""
    text = re.sub(r"^(&\s*('\w+\s+)?|mut\s+|dyn\s+|\*const\s+|\*mut\s+|!)+", "", text.strip())
    return re.sub(r"[<\s].*", "", text, flags=re.S).replace("::", ".")


def split(args):
    """The first of the arguments of a type."""
    depth = 0
    for i, c in enumerate(args):
        if c in "<([{":
            depth += 1
        elif c in ")]}" or c == ">" and args[i - 1] not in "-=":
            depth -= 1
        elif c == "," and depth == 0:
            return args[:i]
    return args


def called(text):
    return set(re.findall(r"(\w+)(?:::<[^()]*>)?\s*\(", text))


def left_out(text):
    """The names that are called in what cfg may leave out of a function."""
    names = set()
    for m in re.finditer(r"#\[cfg\(", text):
        depth, start = 0, m.end() - 1
        for i in range(start, len(text)):
            depth += (text[i] in "{(") - (text[i] in "})")
            if depth == 0 and text[i] == ")" and text[i + 1:i + 2] == "]" and start < m.end():
                start = i + 2
            elif depth < 0 or depth == 0 and text[i] in "};,":
                names |= called(text[start:i])
                break
    return names


class Crate:
    def __init__(self, root, args):
        self.root, self.args = root, args
        edition = next(a for a in args if a.startswith("--edition"))
        self.sources = {}
        for at, _, names in os.walk(os.path.join(root, "src")):
            for n in names:
                if n.endswith(".rs"):
                    path = os.path.relpath(os.path.join(at, n), root)
                    self.sources[path] = Source(root, path, edition)
        self.compiled = set()

    def read(self):
        self.imports()
        for path in sorted(self.compiled):
            out(kind="file", file=path)
            self.sources[path].define()
        self.calls()

    def imports(self):
        """States what each use leads to."""
        files, uses, owner = {}, [], None
        pending = None
        for line in rustc(self.root, "src/lib.rs", "hir-tree", *self.args):
            m = OWNER.match(line)
            if m:
                owner, pending = m[1], None
            elif line.startswith(" " * 16 + "kind: Use("):
                pending = []
            elif pending is not None and RES.match(line) and len(pending) < 3 and line.startswith(" " * 32 + "    "):
                pending.append(RES.match(line)[1])
            elif "segments: [" in line and pending is not None:
                uses.append((owner, pending))
                pending = None
            elif line.startswith(" " * 16 + "span: ") or "inner_span: " in line:
                m = SPAN.search(line)
                if m:
                    files.setdefault(owner, m[1])
        files[""] = "src/lib.rs"
        for owner, targets in uses:
            for t in targets:
                to, file = files.get(t), files.get(owner)
                while to is None and "::" in t:  # a variant, or a member
                    t = t.rpartition("::")[0]
                    to = files.get(t)
                if file in self.sources and to in self.sources and to != file:
                    out(kind="import", file=file, to=to)
        self.compiled |= set(files.values()) & set(self.sources)

    def calls(self):
        bodies, calls = self.bodies()
        callers, compiled = set(), set()
        for owner, (path, start, end) in bodies.items():
            compiled |= {(path, around[0]) for around in self.sources[path].around(start, end)[-1:]}
            caller = self.caller(bodies, owner)
            if caller:
                callers.add(caller[:2])
                left = left_out(self.sources[caller[0]].text(*caller[2:]))
                out(kind="caller", file=caller[0], name=caller[1], unknown=sorted(left))
        self.declared = {}
        for path, s in self.sources.items():
            for scope in s.scopes:
                if scope[3] == "Fn":
                    around = s.around(scope[0], scope[1])
                    if (path, scope[0]) not in compiled and (path, s.name(around)) in callers:  # another of this name is
                        out(kind="caller", file=path, name=s.name(around), unknown=sorted(called(s.text(scope[0], scope[1]))))
                    outer = around[-2] if len(around) > 1 else None
                    if outer and outer[3] in ("Trait", "Impl"):
                        key = (outer[4].rpartition(".")[2] if outer[3] == "Impl" else outer[2], outer[2].rpartition(".")[2] if outer[3] == "Impl" else "", scope[2])
                        self.declared.setdefault(key, set()).add((path, s.name(around)))
        for call in calls:
            self.call(bodies, *call)

    def bodies(self):
        """Returns where the body of each function is, and the calls in them."""
        bodies, calls, owner, lines = {}, [], None, []
        stream = rustc(self.root, "src/lib.rs", "thir-tree", *self.args)
        for line in stream:
            if line.startswith("DefId("):
                m = BODY.match(line)
                owner = m and m[1]
            elif owner is not None and line.startswith("        span: ") and owner not in bodies:
                m = SPAN.search(line)
                if m and m[1] in self.sources:
                    bodies[owner] = (m[1], *position(m), m[6] == "0")
            elif owner is not None and line.endswith(" Call {"):
                ty, hir, _, _, _, _, _, span = (next(stream).strip() for _ in range(8))
                m = SPAN.search(span)
                if hir.endswith("true") and m:
                    calls.append((owner, ty, m[1], *position(m)))
        return {o: b[:3] for o, b in bodies.items() if b[3]}, calls

    def caller(self, bodies, owner):
        """Returns the definition that a body belongs to: that of a closure to its function."""
        at = bodies.get(re.sub(r"(::\{(closure|constant)#\d+\})+$", "", owner))
        if not at:
            return None
        path, start, end = at
        return path, self.sources[path].name(self.sources[path].around(start, end)), start, end

    def call(self, bodies, owner, ty, path, start, end):
        caller = self.caller(bodies, owner)
        if not caller:
            return
        m = CALLEE.match(ty)
        written = caller[0] == path and caller[2] <= start and end <= caller[3]
        text = self.sources[path].text(start, end) if written else ""
        name = re.sub(r"::<.*", "", text, flags=re.S).rpartition("::")[2].strip()
        to, known = self.target(bodies, m[1], m[2], split(m[3])) if m else (None, False)
        if known and len(to) > 1 or not m:  # implementations that only their arguments tell apart, or a value
            if name:
                out(kind="caller", file=caller[0], name=caller[1], unknown=[name])
            return
        if not to:
            return
        called = m[2].rpartition("::")[2]
        before = self.sources[path].text((start[0], 1), start).rstrip() if written else ""
        if start[0] > 1 and written and not before:
            before = "\n".join(self.sources[path].lines[:start[0] - 1]).rstrip()
        after = self.sources[path].lines[end[0] - 1][end[1] - 1:].lstrip()
        written = written and name == called and (not after or after.startswith(("(", "::<")))  # not an argument of a macro
        how = "macro" if not written else "trait" if not known else "method" if before.endswith(".") else "static"
        for file, name in to:
            out(kind="call", file=caller[0], name=caller[1], to=file, toName=name, how=how)

    def target(self, bodies, crate, path, receiver):
        """Returns what a call leads to and whether that is what runs: of a method of a
        trait the implementation of the type it is called on, if that is known."""
        names = path.split("::")
        name, trait = names[-1], names[-2] if len(names) > 1 else ""
        own = crate == self.name
        if "{impl" in trait or own and path in bodies and not self.is_trait(bodies[path]):
            at = self.caller(bodies, path) if own else None
            return {at[:2]} if at else set(), True
        kind = type_name(re.sub(r"'\{erased\} ", "", receiver)).rpartition(".")[2]
        found = self.declared.get((trait, kind, name))
        if found:
            return found, True
        return self.declared.get((trait, "", name)) if own else None, False

    def is_trait(self, at):
        around = self.sources[at[0]].around(at[1], at[2])
        return len(around) > 1 and around[-2][3] == "Trait"

    @property
    def name(self):
        return next(a.partition("=")[2] for a in self.args if a.startswith("--crate-name="))


Crate(os.path.realpath(sys.argv[1]), sys.argv[2:]).read()
