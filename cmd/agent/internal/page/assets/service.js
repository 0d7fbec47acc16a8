"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const say = (text) => { $("say").textContent = text; };
  const make = (tag, text, more) => Object.assign(document.createElement(tag), text === undefined ? {} : {textContent: text}, more);
  const key = "agent-token";
  let token = sessionStorage.getItem(key) || "";
  let before = "", session = "", following, page = 1, ticks = 0;

  const headers = () => ({Authorization: "Bearer " + token});
  // the answer of the service; throws its error
  const call = async (method, path, body) => {
    const res = await fetch(path, {method, headers: body ? {...headers(), "Content-Type": "application/json"} : headers(), body: body && JSON.stringify(body), cache: "no-store"});
    if (res.status === 401) leave("The service does not know this token.");
    if (res.status === 204) return null;
    const data = await res.json();
    if (!res.ok) throw new Error(data.error.message);
    return data;
  };
  const trying = (work) => Promise.resolve().then(work).catch((err) => say(err.message));
  const of = (id, rest = "") => "/v1/sessions/" + encodeURIComponent(id) + rest;

  const leave = (text) => {
    token = "";
    sessionStorage.removeItem(key);
    stop();
    $("usage").hidden = true;
    for (const id of ["list", "question-list", "schedule-list", "items", "shown", "diff"]) $(id).replaceChildren();
    $("app").hidden = true;
    $("sign-in").hidden = false;
    say(text || "");
  };

  const title = (s) => s.title || s.id;
  const place = (s) => { const w = s.workspace || {}; return w.git ? w.git + (w.revision ? " at " + w.revision : "") : w.directory || "–"; };
  const row = (s) => {
    const tr = make("tr"), name = make("td");
    name.append(make("a", title(s), {href: "#/s/" + encodeURIComponent(s.id)}));
    tr.append(name, make("td", s.state + (s.error ? ": " + s.error : "")), make("td", place(s)), make("td", new Date(s.updated).toLocaleString()));
    return tr;
  };
  const list = async (older) => {
    const d = await call("GET", "/v1/sessions?limit=50" + (older && before ? "&before=" + encodeURIComponent(before) : ""));
    if (session || (!older && $("list").dataset.older)) return; // it would take the older ones away
    $("list").replaceChildren(...(older ? $("list").children : []), ...d.sessions.map(row));
    if (older) $("list").dataset.older = "1";
    before = d.before || "";
    $("older").hidden = !before;
    $("none").hidden = $("list").children.length > 0;
  };

  // schedules, and what the tenant used: to add that up costs the service time
  const schedule = (s) => {
    const tr = make("tr"), last = make("td"), end = make("td");
    if (s.last) last.append(make("a", "session", {href: "#/s/" + encodeURIComponent(s.last)}));
    end.append(make("button", "Delete", {type: "button", ariaLabel: "Delete the schedule " + title(s), onclick: () => trying(async () => {
      if (!confirm("Delete the schedule?")) return;
      await call("DELETE", "/v1/schedules/" + encodeURIComponent(s.id));
      await extras();
    })}));
    tr.append(make("td", title(s)), make("td", s.cron), make("td", new Date(s.next).toLocaleString() + (s.error ? ": " + s.error : "")), last, end);
    return tr;
  };
  const extras = async () => {
    const [d, u] = await Promise.all([call("GET", "/v1/schedules"), call("GET", "/v1/usage")]);
    const now = JSON.stringify(d.schedules);
    if (now !== $("schedule-list").dataset.now) $("schedule-list").replaceChildren(...d.schedules.map(schedule));
    $("schedule-list").dataset.now = now;
    $("schedules").hidden = !d.schedules.length;
    const of = (n, most) => most ? ` of ${n(most)}` : "", whole = (n) => n.toLocaleString(), usd = (n) => "$" + n.toFixed(2);
    const {tokens: t, costUsd: cost = 0} = u.used, q = u.quota;
    $("usage").textContent = `Today (UTC): ${whole((t.input || 0) + (t.output || 0))}${of(whole, q.tokens)} tokens, ${usd(cost)}${of(usd, q.costUsd)}. ` +
      `Sessions: ${whole(u.sessions)}${of(whole, q.sessions)}, running ${whole(u.running)}${of(whole, q.running)}.`;
    $("usage").hidden = false;
  };

  // questions: a card each, which stays as it is while it is open
  const words = {once: "Approve once", session: "Approve for this session", always: "Always approve", deny: "Deny", yes: "Yes", no: "No"};
  const lines = (sign, text) => (text || "").replace(/\n$/, "").split("\n").filter((l, i, all) => all.length > 1 || l).map((l) => sign + l);
  const card = (o) => {
    const q = o.question, e = make("article", undefined, {className: "item question"});
    e.dataset.key = o.session + "/" + q.qid + "/" + o.asked;
    const head = make("h3", q.title), from = make("p", undefined, {className: "soft"});
    from.append("Session ", make("a", o.title || o.session, {href: "#/s/" + encodeURIComponent(o.session)}));
    if (o.deadline) from.append(", denied after " + new Date(o.deadline).toLocaleString());
    e.append(head, from);
    if (q.detail) e.append(make("p", q.detail, {className: "plain"}));
    if (q.url) e.append(make("pre", q.url));
    if (q.accesses) {
      const ul = make("ul");
      for (const a of q.accesses) ul.append(make("li", a.scope + ": " + a.resource + (a.recursive ? " and everything below" : "") + (a.unconfined ? ", outside the sandbox" : "")));
      e.append(ul);
    }
    for (const edit of q.edits || []) e.append(make("pre", [edit.path, ...lines("-", edit.old), ...lines("+", edit.new)].join("\n")));
    let values;
    if (q.schema) {
      values = make("textarea", "{}", {rows: 3});
      values.setAttribute("aria-label", "Values, as JSON");
      e.append(make("pre", JSON.stringify(q.schema, null, 1)), values);
    }
    const buttons = make("p", undefined, {className: "tools"});
    for (const choice of q.choices) {
      const lasting = choice === "session" || choice === "always";
      if (lasting && (q.offers || []).length > 1) continue; // which rules to add is chosen in the terminal
      const rules = lasting && q.offers?.length ? ": " + q.offers[0].rules.join(", ") : "";
      const b = make("button", (words[choice] || choice) + rules, {type: "button"});
      b.addEventListener("click", () => trying(async () => {
        const body = {question: q.qid, choice};
        if (values && choice === "yes") body.values = JSON.parse(values.value);
        buttons.querySelectorAll("button").forEach((x) => { x.disabled = true; });
        try {
          await call("POST", of(o.session, "/answers"), body);
        } finally {
          buttons.querySelectorAll("button").forEach((x) => { x.disabled = false; });
        }
        e.remove();
        say("Answered: " + (words[choice] || choice));
        refresh();
      }));
      buttons.append(b);
    }
    e.append(buttons);
    return e;
  };
  const questions = async () => {
    const d = await call("GET", session ? of(session, "/questions") : "/v1/questions");
    const known = new Map([...$("question-list").children].map((e) => [e.dataset.key, e])), keys = new Set();
    for (const o of d.questions) {
      const k = o.session + "/" + o.question.qid + "/" + o.asked;
      keys.add(k);
      if (!known.has(k)) $("question-list").append(card(o));
    }
    known.forEach((e, k) => { if (!keys.has(k)) e.remove(); });
    $("questions").hidden = d.questions.length === 0;
  };

  // one session: the service sends it as it is shown
  const stop = () => { following?.abort(); following = undefined; };
  const take = (text) => {
    const line = text.split("\n").find((l) => l.startsWith("data: "));
    if (!line) return;
    const d = JSON.parse(line.slice(6)), bottom = innerHeight + scrollY > document.documentElement.scrollHeight - 80;
    for (const id of ["summary", "timeline", "state"]) if (!$(id)) $("shown").append(make(id === "state" ? "p" : "section", undefined, {id}));
    document.dispatchEvent(new CustomEvent("update", {detail: d}));
    $("typing").textContent = d.typing || "";
    $("typing").hidden = !d.typing;
    $("more").hidden = !d.more;
    if (bottom) scrollTo(0, document.documentElement.scrollHeight);
  };
  const follow = async (id) => {
    stop();
    const mine = following = new AbortController();
    while (following === mine) {
      try {
        const res = await fetch(`/page/sessions/${encodeURIComponent(id)}?page=${page}`, {headers: headers(), signal: mine.signal, cache: "no-store"});
        if (!res.ok) throw new Error((await res.json()).error.message);
        const from = res.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let rest = ""; ;) {
          const {value, done} = await from.read();
          if (done) break;
          const all = (rest + value).split("\n\n");
          rest = all.pop();
          all.forEach(take);
        }
        if (!$("more").hidden) return;
      } catch (err) {
        if (following !== mine) return;
        say(err.message);
      }
      await new Promise((wait) => setTimeout(wait, 1000));
    }
  };
  const state = async () => {
    const s = await call("GET", of(session));
    if (s.id !== session) return;
    $("title").textContent = title(s);
    $("session-state").textContent = s.state;
    $("session-error").textContent = s.error || "";
  };

  let waiting = 0, refreshed = Promise.resolve(); // one refresh at a time
  const refresh = () => (waiting++, refreshed = refreshed.then(() => trying(async () => {
    waiting--;
    if (!token || document.hidden) return;
    await questions();
    await (session ? state() : list(false));
    if (!session && ticks++ % 15 === 0) await extras();
  })));
  const route = () => {
    if (!token) return;
    const hash = location.hash;
    if (hash && !hash.startsWith("#/")) return; // a place in the page
    stop();
    page = 1;
    ticks = 0;
    session = hash.startsWith("#/s/") ? decodeURIComponent(hash.slice(4)) : "";
    for (const id of ["items", "shown", "diff", "question-list"]) $(id).replaceChildren();
    delete $("list").dataset.older;
    $("typing").hidden = $("changes").hidden = $("more").hidden = true;
    $("overview").hidden = !!session;
    $("one").hidden = !session;
    $("title").textContent = "Sessions";
    if (session) follow(session);
    refresh();
  };
  const enter = () => trying(async () => {
    await call("GET", "/v1/sessions?limit=1");
    sessionStorage.setItem(key, token);
    $("token").value = "";
    $("sign-in").hidden = true;
    $("app").hidden = false;
    say("");
    route();
  });
  const workspace = () => {
    switch ($("where").value) {
      case "new": return {directory: "new"};
      case "directory": return {directory: $("directory").value};
      case "git": return $("revision").value ? {git: $("git").value, revision: $("revision").value} : {git: $("git").value};
    }
    return {};
  };
  const acts = {
    enter: () => { token = $("token").value.trim(); return enter(); },
    leave: () => leave("The token is forgotten."),
    older: () => list(true),
    more: () => { page++; $("items").replaceChildren(); $("more").hidden = true; follow(session); },
    start: async () => {
      const text = $("prompt").value.trim();
      if (!text) return say("Say what to do.");
      const cron = $("cron").value.trim(), first = {title: text.split("\n")[0].slice(0, 80), content: [{type: "text", text}], workspace: workspace()};
      const s = cron ? await call("POST", "/v1/schedules", {cron, ...first}) : await call("POST", "/v1/sessions", first);
      $("prompt").value = $("cron").value = "";
      if (cron) return await extras(), say("Scheduled: first at " + new Date(s.next).toLocaleString());
      location.hash = "#/s/" + encodeURIComponent(s.id);
    },
    send: async () => {
      const text = $("input").value.trim();
      if (!text) return say("Write an input.");
      await call("POST", of(session, "/commands"), {type: "input", content: [{type: "text", text}]});
      $("input").value = "";
      say("Sent");
    },
    cancel: async () => { await call("POST", of(session, "/commands"), {type: "cancel"}); say("Cancelled"); },
    delete: async () => {
      if (!confirm("Delete the session with its log?")) return;
      const id = session;
      session = ""; // nothing asks for it any more
      stop();
      await refreshed;
      try {
        await call("DELETE", of(id));
      } catch (err) {
        route();
        throw err;
      }
      location.hash = "#/";
      say("Deleted");
    },
    diff: async () => {
      const d = await call("GET", of(session, "/diff"));
      $("changes").hidden = false;
      $("diff").replaceChildren(...d.files.map((f) => {
        const e = make("details");
        e.append(make("summary", `${f.kind} ${f.path} +${f.added} −${f.removed}`), make("pre", f.diff || "The difference is not shown."));
        return e;
      }));
      if (!d.files.length) $("diff").append(make("p", "Nothing changed."));
      if (d.truncated) $("diff").append(make("p", "Not all is shown.", {className: "soft"}));
    },
  };
  document.addEventListener("click", (ev) => {
    const b = ev.target.closest("[data-act]");
    if (b) trying(acts[b.dataset.act]);
  });
  $("token").addEventListener("keydown", (ev) => { if (ev.key === "Enter") trying(acts.enter); });
  $("where").addEventListener("change", () => {
    $("where-directory").hidden = $("where").value !== "directory";
    $("where-git").hidden = $("where").value !== "git";
  });
  addEventListener("hashchange", route);
  setInterval(() => waiting || refresh(), 2000);
  if (token) enter();
})();
