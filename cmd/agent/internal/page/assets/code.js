"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const say = (text) => { $("status").textContent = text; };
  const {files, nodes, edges, cycles, start} = JSON.parse($("data").textContent);
  const most = {packages: 80, rows: 500, found: 30};
  const words = ["high", "medium", "low"];
  const make = (name, props, ...children) => { const e = Object.assign(document.createElement(name), props); e.append(...children); return e; };
  const count = (n, one, many) => n + " " + (n === 1 ? one : many || one + "s");

  // folders, folded until few enough are left
  const dirs = files.map((f) => { const i = f.lastIndexOf("/"); return i < 0 ? "." : f.slice(0, i); });
  const folded = (depth) => dirs.map((d) => d.split("/").slice(0, depth).join("/"));
  let depth = Math.max(1, ...dirs.map((d) => d.split("/").length)), names = folded(depth);
  while (depth > 1 && new Set(names).size > most.packages) names = folded(--depth);
  const packages = [...new Set(names)].sort(), place = new Map(packages.map((p, i) => [p, i]));
  const packageOf = names.map((n) => place.get(n));
  const filesOf = packages.map(() => []);
  packageOf.forEach((p, f) => filesOf[p].push(f));

  // edges: from, to, confidence (3 = an import, which spreads no change)
  const inner = files.map(() => []), into = nodes.map(() => []), uses = packages.map(() => new Set()), used = packages.map(() => new Set());
  nodes.forEach((n, i) => inner[n[2]].push(i));
  for (let i = 0; i < edges.length; i += 3) {
    const [from, to, sure] = edges.slice(i, i + 3), a = packageOf[nodes[from][2]], b = packageOf[nodes[to][2]];
    if (a !== b) { uses[a].add(b); used[b].add(a); }
    if (sure < 3) into[to].push([from, sure]);
  }
  const ring = new Set(cycles.flat().map((f) => packageOf[f]));

  // a line for each level: what a package uses is below it, but for cycles
  const level = packages.map(() => 0), state = packages.map(() => 0);
  const rise = (p) => {
    state[p] = 1;
    for (const q of uses[p]) {
      if (!state[q]) rise(q);
      if (state[q] === 2) level[p] = Math.max(level[p], level[q] + 1);
    }
    state[p] = 2;
  };
  packages.forEach((_, p) => state[p] || rise(p));
  const boxes = packages.map((name, p) => make("a", {href: "#p" + p, className: ring.has(p) ? "ring" : "", textContent: name}));
  for (let l = Math.max(0, ...level); l >= 0; l--)
    $("map").append(make("ul", {className: "layer"}, ...boxes.filter((_, p) => level[p] === l).map((b) => make("li", {}, b))));

  const mark = (p, hit) => {
    boxes.forEach((b, q) => {
      b.classList.toggle("uses", p >= 0 && uses[p].has(q));
      b.classList.toggle("used", p >= 0 && used[p].has(q));
      b.classList.toggle("hit", !!hit && hit.has(q));
      if (p === q) b.setAttribute("aria-current", "true"); else b.removeAttribute("aria-current");
    });
    const svg = $("lines"), at = svg.getBoundingClientRect();
    svg.replaceChildren();
    if (p < 0) return;
    const middle = (b) => { const r = b.getBoundingClientRect(); return [r.x + r.width / 2 - at.x, r.y + r.height / 2 - at.y]; };
    for (const q of new Set([...uses[p], ...used[p]])) {
      const line = document.createElementNS("http://www.w3.org/2000/svg", "line"), a = middle(boxes[p]), b = middle(boxes[q]);
      ["x1", "y1", "x2", "y2"].forEach((k, i) => line.setAttribute(k, [...a, ...b][i]));
      svg.append(line);
    }
  };

  const link = (kind, i) => make("a", {href: "#" + kind + i, textContent: kind === "p" ? packages[i] : kind === "f" ? files[i] : nodes[i][0]});
  const list = (title, kind, all) => {
    const ul = make("ul", {}, ...all.slice(0, most.rows).map((i) => make("li", {}, link(kind, i))));
    if (all.length > most.rows) ul.append(make("li", {textContent: `… and ${all.length - most.rows} more`}));
    return make("details", {open: all.length <= 30}, make("summary", {textContent: `${title} (${all.length})`}), ul);
  };
  const choose = (title, ...content) => { $("details-h").textContent = title; $("chosen").replaceChildren(...content); };

  // what a change may break: along sure edges as far as they lead, then along less sure ones
  const cone = (from) => {
    const reached = new Map(from.map((n) => [n, [0, 0]]));
    let queue = [...from];
    for (let tier = 0; tier < 3; tier++) {
      for (let at = 0; at < queue.length; at++)
        for (const [n, sure] of into[queue[at]])
          if (sure <= tier && !reached.has(n)) { reached.set(n, [reached.get(queue[at])[0] + 1, tier]); queue.push(n); }
      queue = [...reached.keys()].sort((a, b) => reached.get(a)[0] - reached.get(b)[0] || a - b);
    }
    return queue.filter((n) => reached.get(n)[0] > 0 && nodes[n][1] !== "package").map((n) => [n, ...reached.get(n)]).sort((a, b) => a[2] - b[2] || a[1] - b[1] || a[0] - b[0]);
  };
  const broken = (title, from, ...first) => {
    const all = cone(from), hit = new Set(all.map(([n]) => packageOf[nodes[n][2]]));
    const tests = all.filter(([n]) => nodes[n][1] === "test").length, touched = new Set(all.map(([n]) => nodes[n][2]));
    const text = `A change may break ${count(all.length, "symbol")} in ${count(touched.size, "file")} of ${count(hit.size, "package")}; ${count(tests, "test")} may show it.`;
    const rows = all.slice(0, most.rows).map(([n, far, sure]) => make("tr", {}, make("td", {}, link("n", n)), make("td", {textContent: nodes[n][1]}),
      make("td", {}, link("f", nodes[n][2])), make("td", {className: "n", textContent: far}), make("td", {textContent: words[sure]})));
    const head = ["Symbol", "Kind", "File", "Distance", "Confidence"].map((h, i) => { const th = make("th", {scope: "col", textContent: h}); if (i === 3) th.className = "n"; return th; });
    const table = make("table", {id: "cone"}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows));
    choose(title, ...first, make("p", {textContent: text}), ...(rows.length ? [table] : []));
    if (all.length > most.rows) $("chosen").append(make("p", {className: "soft", textContent: `… and ${all.length - most.rows} more`}));
    mark(-1, hit);
    say(text);
  };
  const show = {
    p: (p) => {
      choose("Package " + packages[p], list("Used by", "p", [...used[p]].sort((a, b) => a - b)), list("Uses", "p", [...uses[p]].sort((a, b) => a - b)), list("Files", "f", filesOf[p]));
      mark(p);
      say(`${packages[p]}: used by ${used[p].size}, uses ${uses[p].size}`);
    },
    f: (f) => {
      const own = inner[f].filter((n) => nodes[n][1] !== "package");
      broken("File " + files[f], own, make("p", {}, "In package ", link("p", packageOf[f])), list("Symbols", "n", own.filter((n) => nodes[n][1] !== "file")));
    },
    n: (n) => broken(nodes[n][0], [n], make("p", {}, nodes[n][1] + " in ", link("f", nodes[n][2]), nodes[n][3] ? ", line " + nodes[n][3] : "")),
  };
  const go = () => {
    const [, kind, n] = /^#([pfn])(\d+)$/.exec(location.hash) || [];
    if (!kind || +n >= {p: packages, f: files, n: nodes}[kind].length) return;
    show[kind](+n);
    $("details-h").focus({preventScroll: true});
    $("details").scrollIntoView();
  };
  addEventListener("hashchange", go);
  $("find").addEventListener("input", (ev) => {
    const want = ev.target.value.toLowerCase(), found = [];
    for (let f = 0; want && f < files.length && found.length < most.found; f++) if (files[f].toLowerCase().includes(want)) found.push(["f", f]);
    for (let n = 0; want && n < nodes.length && found.length < most.found; n++)
      if (nodes[n][1] !== "file" && nodes[n][1] !== "package" && nodes[n][0].toLowerCase().includes(want)) found.push(["n", n]);
    $("found").replaceChildren(...found.map(([kind, i]) => make("li", {}, link(kind, i), ...(kind === "n" ? [make("span", {className: "soft", textContent: " " + files[nodes[i][2]]})] : []))));
    if (want) say(found.length < most.found ? `${found.length} found` : `The first ${found.length} are listed`);
  });
  $("cycles").append(...(cycles.length ? cycles.map((c) => list(files[c[0]] + " and others", "f", c)) : [make("p", {textContent: "None"})]));
  if (location.hash) go(); else if (start >= 0) { if (nodes[start][1] === "file") show.f(nodes[start][2]); else show.n(start); }
  document.documentElement.dataset.ready = "1";
})();
