"""Prints what Clang knows of a directory with C or C++, as reference facts for
"agent graph bench --truth". Only the source files at its top are compiled.

usage: c.py DIRECTORY [COMPILER ARGUMENT…]
"""

import glob
import json
import os
import sys

from clang.cindex import CursorKind as K
from clang.cindex import Index, conf

FUNCTIONS = {K.FUNCTION_DECL, K.CXX_METHOD, K.CONSTRUCTOR, K.DESTRUCTOR, K.FUNCTION_TEMPLATE, K.CONVERSION_FUNCTION}
CLASSES = {K.CLASS_DECL, K.STRUCT_DECL, K.UNION_DECL, K.CLASS_TEMPLATE, K.ENUM_DECL}
seen = set()


def out(**fact):
    line = json.dumps(fact)
    if line not in seen:
        seen.add(line)
        print(line)


def clang_template(cursor):
    """The member of a template that a member of its instance was made from."""
    try:
        return conf.lib.clang_getSpecializedCursorTemplate(cursor)
    except Exception:
        return None


class Reader:
    """States the facts of one translation unit."""

    def __init__(self, root):
        self.root = root
        self.bodies = {}  # where functions are defined, by USR
        self.unknown = {}

    def path(self, cursor):
        f = cursor.location.file
        if f is None:
            return None
        rel = os.path.relpath(os.path.realpath(f.name), self.root)
        return None if rel.startswith("..") else rel

    def name(self, cursor):
        names = []
        while cursor is not None and cursor.kind != K.TRANSLATION_UNIT:
            if cursor.kind in FUNCTIONS | CLASSES or cursor.kind == K.NAMESPACE:
                name = cursor.spelling.split("<")[0]
                if name and "(" not in name:
                    names.insert(0, name)
            cursor = cursor.semantic_parent
        return ".".join(names)

    def read(self, unit):
        for i in unit.get_includes():
            from_, to = (os.path.relpath(os.path.realpath(f.name), self.root) for f in (i.source, i.include))
            if not from_.startswith("..") and not to.startswith("..") and from_ != to:
                out(kind="import", file=from_, to=to)
        for pass_ in (self.declare, self.calls):
            for c in unit.cursor.get_children():
                if self.path(c):
                    pass_(c)

    def declare(self, c):
        path = self.path(c)
        if path:
            out(kind="file", file=path)
        if path and c.spelling and "(" not in c.spelling and (c.kind in FUNCTIONS or c.kind in CLASSES) and c.is_definition():
            out(kind="definition", file=path, name=self.name(c))
            self.bodies[c.get_usr()] = (path, self.name(c))
        if path and c.kind == K.TYPEDEF_DECL and any(d.kind in CLASSES and (not d.spelling or "(" in d.spelling or d.spelling == c.spelling) for d in c.get_children()):
            out(kind="definition", file=path, name=self.name(c.semantic_parent) + c.spelling)
        for child in c.get_children():
            self.declare(child)

    def calls(self, c, caller=None):
        if c.kind in FUNCTIONS and c.is_definition() and self.path(c):
            caller = (self.path(c), self.name(c))
            out(kind="caller", file=caller[0], name=caller[1])
        if c.kind in (K.CALL_EXPR, K.CXX_NEW_EXPR) and caller and c.spelling:
            to = c.referenced
            if to is None:
                self.unknown.setdefault(caller, set()).add(c.spelling)
            elif to.kind in FUNCTIONS and self.path(to):
                at = self.bodies.get((clang_template(to) or to).get_usr())
                how = {K.CXX_METHOD: "method", K.CONSTRUCTOR: "constructor"}.get(to.kind, "static")
                if at:
                    out(kind="call", file=caller[0], name=caller[1], to=at[0], toName=at[1], how=how)
        for child in c.get_children():
            self.calls(child, caller)


def main():
    root = os.path.realpath(sys.argv[1])
    sources = sorted(p for end in ("c", "cc", "cpp", "cxx") for p in glob.glob(root + "/*." + end))
    readers = []
    for source in sources:
        args = sys.argv[2:] + ["-I" + root] + (["-std=gnu89"] if source.endswith(".c") else ["-std=c++17"])
        readers.append((Reader(root), Index.create().parse(source, args=args)))
    for reader, unit in readers:  # first all definitions, then what leads to them
        for c in unit.cursor.get_children():
            if reader.path(c):
                reader.declare(c)
    bodies = {usr: at for reader, _ in readers for usr, at in reader.bodies.items()}
    for reader, unit in readers:
        reader.bodies = bodies
        reader.read(unit)
        for (path, name), names in reader.unknown.items():
            out(kind="caller", file=path, name=name, unknown=sorted(names))


main()
