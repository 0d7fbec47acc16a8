"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const say = (text) => { const s = $("status"); if (s) s.textContent = text; };
  // pages of a file wait in templates, by number
  const page = (n) => {
    const t = document.querySelector(`template[data-page="${n}"]`), now = $("items");
    if (!t || !now) return false;
    const keep = document.createElement("template");
    keep.dataset.page = now.dataset.page;
    keep.content.append(...now.childNodes);
    now.append(t.content);
    now.dataset.page = n;
    t.replaceWith(keep);
    document.querySelectorAll("[data-goto]").forEach((b) =>
      b.dataset.goto === String(n) ? b.setAttribute("aria-current", "page") : b.removeAttribute("aria-current"));
    say("Page " + n);
    return true;
  };
  const reveal = () => {
    let id = location.hash.slice(1);
    try { id = decodeURIComponent(id); } catch { /* it is not encoded */ }
    if (!id) return;
    let e = $(id);
    if (!e) {
      for (const t of document.querySelectorAll("template[data-page]"))
        if (t.content.getElementById(id)) { page(t.dataset.page); e = $(id); break; }
    }
    if (!e) {
      const find = document.body.dataset.find;
      if (find && /call-/.test(id)) location.replace(find + "?anchor=" + encodeURIComponent(id));
      return;
    }
    document.querySelectorAll(".at").forEach((x) => x.classList.remove("at"));
    e.classList.add("at");
    for (let d = e; d; d = d.parentElement) if (d.tagName === "DETAILS") d.open = true;
    const d = e.querySelector(":scope>details");
    if (d) { d.open = true; d.firstElementChild.focus({preventScroll: true}); }
    e.scrollIntoView();
  };
  addEventListener("hashchange", reveal);
  document.addEventListener("click", (ev) => {
    const b = ev.target.closest("[data-do],[data-goto]");
    if (!b) return;
    if (b.dataset.goto) {
      if (page(b.dataset.goto)) { ev.preventDefault(); $("conversation").scrollIntoView(); $("conversation-h").focus(); }
      return;
    }
    const calls = document.querySelectorAll("#items .call>details");
    if (b.dataset.do === "failed") {
      const failed = [...document.querySelectorAll("#items .failed,#items .failure")];
      if (!failed.length) return say("Nothing failed on this page");
      const i = (failed.findIndex((f) => f.classList.contains("at")) + 1) % failed.length;
      if (location.hash === "#" + failed[i].id) reveal(); else location.hash = failed[i].id;
      return say(`Failure ${i + 1} of ${failed.length}`);
    }
    calls.forEach((d) => { d.open = b.dataset.do === "open"; });
  });
  document.addEventListener("input", (ev) => {
    if (ev.target.id !== "filter") return;
    const want = ev.target.value.toLowerCase();
    let n = 0;
    document.querySelectorAll("#sessions tbody tr").forEach((tr) => {
      tr.hidden = !tr.textContent.toLowerCase().includes(want);
      if (!tr.hidden) n++;
    });
    say(`${n} sessions`);
  });
  // a live page: the server sends what changed
  const parse = (html) => { const t = document.createElement("template"); t.innerHTML = html; return t.content.firstElementChild; };
  const put = (html, end) => {
    const e = parse(html), old = e && $(e.id);
    if (!e) return;
    if (!old) { if (end) $("items").append(e); return; }
    const opened = [...old.querySelectorAll("details")].map((d) => d.open), news = e.querySelectorAll("details");
    opened.forEach((o, i) => { if (news[i] && o) news[i].open = true; });
    const had = old.contains(document.activeElement) && document.activeElement.tagName === "SUMMARY";
    const at = had ? [...old.querySelectorAll("summary")].indexOf(document.activeElement) : -1;
    old.replaceWith(e);
    if (at >= 0) e.querySelectorAll("summary")[at]?.focus({preventScroll: true});
  };
  document.addEventListener("update", (ev) => {
    for (const html of ev.detail.items || []) put(html, true);
    for (const html of ev.detail.parts || []) put(html, false);
  });
  const live = () => {
    const url = document.body.dataset.live;
    if (!url) return;
    let source, seq = document.body.dataset.seq;
    const stop = () => { source?.close(); source = undefined; };
    const start = () => {
      if (source || document.hidden) return;
      source = new EventSource(url + "&after=" + seq);
      source.onmessage = (m) => {
        const bottom = innerHeight + scrollY > document.documentElement.scrollHeight - 80;
        const d = JSON.parse(m.data);
        seq = m.lastEventId;
        document.dispatchEvent(new CustomEvent("update", {detail: d}));
        if (d.items) say(`${d.items.length} new`);
        if (d.more) {
          stop();
          document.removeEventListener("visibilitychange", seen);
          if (bottom) location.search = "?page=" + d.more;
          say("The session continues on page " + d.more);
          return;
        }
        if (bottom) scrollTo(0, document.documentElement.scrollHeight);
        if (d.ended) { say("The session ended"); stop(); document.removeEventListener("visibilitychange", seen); }
      };
    };
    // browsers allow few connections: a hidden page needs none
    const seen = () => (document.hidden ? stop() : start());
    document.addEventListener("visibilitychange", seen);
    start();
  };
  reveal();
  live();
  document.documentElement.dataset.ready = "1";
})();
