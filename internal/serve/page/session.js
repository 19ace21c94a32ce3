// One session: what was said, what is being said, and what fills the window.
import { h } from "./vendor/preact.js";
import { useEffect, useLayoutEffect, useRef } from "./vendor/hooks.js";
import { signal } from "./vendor/signals.js";
import htm from "./vendor/htm.js";
import { short, dollars } from "./api.js";
import { Model, nothing, pageSize } from "./model.js";
import { Item, Compacted, Diff } from "./items.js";
import { Picture } from "./picture.js";
import { fail, nameOf, remove } from "./app.js";

const html = htm.bind(h);
const focus = (id) => setTimeout(() => document.getElementById(id)?.focus());

function Question({ m }) {
  const q = m.question.value;
  const box = useRef();
  const why = useRef();
  const ready = useRef(signal("")).current; // the question that can be answered by now
  useEffect(() => {
    if (!q) return undefined;
    // Whoever is typing goes on typing, and a click meant for something else does not answer.
    if (!document.activeElement?.value?.trim?.()) box.current.focus();
    const t = setTimeout(() => (ready.value = q.id), 400);
    return () => clearTimeout(t);
  }, [q?.id]);
  if (!q) return null;
  const answer = (a) => () => {
    if (ready.value !== q.id) return;
    m.answer(a, a === "no" ? why.current.value.trim() : "");
    focus("say");
  };
  const button = (a, text) => html`<button disabled=${ready.value !== q.id} onClick=${answer(a)}>${text}</button>`;
  return html`<section class="question" role="group" aria-label="Permission" ref=${box} tabindex="-1">
    <p>${q.url ? "Read this page?" : q.command ? html`Run this in ${q.folder}?` : html`Change <code>${q.path}</code>?`}</p>
    ${(q.url || q.command) && html`<pre>${q.url || q.command}</pre>`}
    ${q.diff && html`<${Diff} text=${q.diff} />`}
    <div class="answers">
      ${button("once", "Once")}
      ${!q.private && html`${button("session", "For this session")}${button("always", "Always here")}`}
      ${button("no", "No")}
      <input ref=${why} placeholder="No, because …" aria-label="Why not" onKeyDown=${(e) => e.key === "Enter" && answer("no")()} />
    </div>
    ${!q.private && q.rule && html`<p class="hint">“For this session” and “Always here” allow <code>${q.rule}</code>.</p>`}
  </section>`;
}

const pictures = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const mostBytes = 20 << 20; // of all pictures in a message

// read returns a file as it is sent.
const read = (file) => new Promise((done, failed) => {
  const r = new FileReader();
  r.onload = () => done({ mime: file.type, data: r.result.split(",")[1], name: file.name });
  r.onerror = () => failed(r.error);
  r.readAsDataURL(file);
});

function Composer({ m }) {
  const box = useRef();
  const draft = m.draft.value;
  useEffect(() => {
    const { text, images, focus } = m.draft.value; // as it is now: someone may have typed since
    if (!focus) return;
    m.draft.value = { text, images };
    box.current.focus();
  }, [draft]);
  const send = () => {
    const { text, images } = m.draft.value;
    if (!text.trim() && !images.length) return;
    m.draft.value = nothing;
    m.say({ text: text.trim(), images });
  };
  const key = (e) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
      e.preventDefault();
      send();
    }
    if (e.key === "Escape" && m.running.value) m.halt();
  };
  const add = (files) => m.act(async () => {
    const images = [...m.draft.value.images];
    for (const file of files) {
      if (!pictures.includes(file.type)) throw new Error(`${file.name} is not a PNG, JPEG, GIF or WebP picture`);
      images.push(await read(file));
    }
    if (images.reduce((n, img) => n + img.data.length, 0) > mostBytes) throw new Error("these pictures are too large: a message may have 15 MB");
    m.draft.value = { ...m.draft.value, images };
  });
  const paste = (e) => {
    const files = [...e.clipboardData.files];
    if (!files.length) return;
    e.preventDefault();
    add(files);
  };
  const stops = m.running.value;
  return html`<form class="composer" onSubmit=${(e) => { e.preventDefault(); send(); }}>
    ${m.queue.value.map((what, i) => html`<p class="queued">Next: ${what.text}${what.images.length ? ` (${what.images.length} pictures)` : ""} <button type="button" class="quiet" onClick=${() => {
      m.queue.value = m.queue.value.filter((_, k) => k !== i);
      m.draft.value = { ...what, focus: true };
    }}>Take back</button></p>`)}
    ${draft.images.length > 0 && html`<ul class="added">${draft.images.map((img, i) => html`<li><img alt=${img.name} src=${`data:${img.mime};base64,${img.data}`} /> <button type="button" class="quiet" aria-label=${`Remove ${img.name}`} onClick=${() => (m.draft.value = { ...draft, images: draft.images.filter((_, k) => k !== i) })}>Remove</button></li>`)}</ul>`}
    <textarea id="say" ref=${box} rows="2" placeholder="Write a message" aria-label="Message" value=${draft.text} onInput=${(e) => (m.draft.value = { ...m.draft.value, text: e.target.value })} onKeyDown=${key} onPaste=${paste}></textarea>
    <div class="buttons">
      <label class="button file">Picture<input type="file" class="hidden" accept=${pictures.join(",")} multiple onChange=${(e) => { add([...e.target.files]); e.target.value = ""; }} /></label>
      ${stops && html`<button type="button" class="stop" onClick=${() => m.halt()}>Stop</button>`}
      <button type="submit">${stops ? "Queue" : "Send"}</button>
    </div>
  </form>`;
}

// open reports whether the last turn did not come to its end.
function open(items) {
  const last = items.findLast((it) => !it.dead && ["user", "assistant", "tool"].includes(it.kind));
  return last && (last.kind !== "assistant" || last.error || last.stop === "aborted" || last.stop === "error");
}

function Live({ m, follow }) {
  useLayoutEffect(follow);
  return html`
    ${m.thinking.value && html`<article class="item assistant"><details class="thinking"><summary>Thinking…</summary><div class="text plain">${m.thinking.value}</div></details></article>`}
    ${m.saying.value && html`<article class="item assistant live"><div class="text plain">${m.saying.value}</div></article>`}
    ${m.calls.value.map((c) => html`<div class="running"><code>${c.name}</code> is running…${c.tail && html`<pre class="output">${c.tail}</pre>`}</div>`)}
    ${m.notices.value.map((text) => html`<p class="notice-line">${text}</p>`)}
    ${!m.running.value && open(m.items.value) && html`<p class="notice-line">This turn was interrupted. <button class="resume" onClick=${() => m.say(null)}>Continue it</button></p>`}`;
}

// topmost returns the first item in view, and where it is.
function topmost(box) {
  if (!box) return null;
  const top = box.getBoundingClientRect().top;
  for (const el of box.querySelectorAll(".item[id]")) {
    const at = el.getBoundingClientRect();
    if (at.bottom > top) return { id: el.id, top: at.top };
  }
  return null;
}

const near = 800; // pixels from an end at which more is loaded

function Transcript({ m }) {
  const box = useRef();
  const bottom = useRef(true);
  const place = useRef(signal(0)).current; // the record in view
  const items = m.items.value;
  const before = bottom.current ? null : topmost(box.current); // what is in view stays where it is
  const fill = () => {
    const el = box.current;
    if (!el || m.loading) return;
    if (el.scrollTop < near && m.first > m.floor()) m.earlier();
    else if (!m.atEnd() && el.scrollHeight - el.scrollTop - el.clientHeight < near) m.later();
  };
  const scrolled = () => {
    const el = box.current;
    if (!el) return;
    bottom.current = m.atEnd() && el.scrollHeight - el.scrollTop - el.clientHeight < 60;
    place.value = Number(topmost(el)?.id.slice(1)) || place.value;
    fill();
  };
  const follow = () => {
    if (bottom.current && box.current) box.current.scrollTop = box.current.scrollHeight;
  };
  useLayoutEffect(() => {
    const el = box.current;
    if (m.goal === Infinity) {
      bottom.current = true;
      follow();
    } else if (m.goal) {
      const to = items.find((it) => it.seq >= m.goal) || items[items.length - 1];
      bottom.current = false;
      if (to) document.getElementById("r" + to.seq).scrollIntoView({ block: "start" });
      place.value = m.found = m.goal;
    } else if (before) {
      const now = document.getElementById(before.id);
      if (now) el.scrollTop += now.getBoundingClientRect().top - before.top;
    } else follow();
    m.goal = 0;
    const t = setTimeout(fill); // a page of records may be a short one
    return () => clearTimeout(t);
  }, [items]);
  const latest = () => m.act(() => m.latest());
  const compaction = m.compaction.value;
  const at = compaction ? items.findIndex((it) => it.seq >= compaction.first) : -1;
  return html`<div class="chat">
    ${m.end.value > pageSize * 2 && html`<label class="scrub">Record <input type="range" min="1" max=${m.end.value} value=${place.value || m.end.value} onChange=${(e) => m.act(() => m.around(Number(e.target.value)))} aria-label="Go to a record" /></label>`}
    <div class="scroll" ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-label="What was said" aria-live="off">
      ${items.flatMap((it, i) => [
        i === at && m.first <= compaction.first && html`<${Compacted} key="compacted" m=${m} />`,
        html`<${Item} key=${it.seq} it=${it} m=${m} found=${it.seq === (m.goal || m.found)} />`,
      ].filter(Boolean))}
      ${m.atEnd() && html`<${Live} m=${m} follow=${follow} />`}
    </div>
    ${!m.atEnd() && html`<button class="latest" onClick=${latest}>To the latest</button>`}
    <div role="status" class="hidden">${m.status.value}</div>
    <${Question} m=${m} />
    <${Composer} m=${m} />
  </div>`;
}

function Branches({ m }) {
  const list = m.branches.value;
  if (!list) return null;
  const close = () => {
    m.branches.value = null;
    focus("branches");
  };
  return html`<section class="panel" aria-label="Branches">
    <h3 tabindex="-1" ref=${(el) => el && !el.seen && ((el.seen = true), el.focus())}>Branches</h3>
    ${list.length < 2 && html`<p>There is one branch. “Edit” on a message starts another.</p>`}
    <ul>${list.map((b) => html`<li>${b.live ? html`<strong>here</strong>` : html`<button onClick=${() => m.goTo(b.id)}>Switch</button>`} ${b.turns} ${b.turns === 1 ? "turn" : "turns"}: ${b.text}</li>`)}</ul>
    <p class="hint">Going back does not change files.</p>
    <button onClick=${close}>Close</button>
  </section>`;
}

function Plan({ m }) {
  const p = m.plan.value;
  if (!p) return null;
  const then = (f) => () => {
    f();
    focus("compact");
  };
  return html`<section class="panel" aria-label="Compaction">
    <h3 tabindex="-1" ref=${(el) => el && !el.seen && ((el.seen = true), el.focus())}>Compact the earlier turns?</h3>
    <p>${p.compacted} records become a summary and ${p.kept} stay: ${short(p.tokensBefore)} tokens become about ${short(p.tokensAfter)}.
      ${p.cost ? ` It costs about ${dollars(p.cost)}.` : ""} Nothing is deleted, and it can be undone.</p>
    <button onClick=${then(() => m.compact({}))}>Compact</button> <button onClick=${then(() => (m.plan.value = null))}>Cancel</button>
  </section>`;
}

function Title({ m, s }) {
  if (!m.naming.value) return html`<h2>${nameOf(s)}</h2>`;
  const done = () => {
    m.naming.value = false;
    focus("rename");
  };
  const rename = (e) => {
    e.preventDefault();
    const title = new FormData(e.target).get("title").trim();
    done();
    if (title && title !== s.title) m.rename(title);
  };
  return html`<form onSubmit=${rename}><input name="title" aria-label="Title" defaultValue=${s.title} ref=${(el) => el?.focus()} onKeyDown=${(e) => e.key === "Escape" && done()} /> <button>Save</button></form>`;
}

export function Session({ id, part }) {
  const model = useRef(null);
  if (!model.current) model.current = new Model(id);
  const m = model.current;
  const seq = Number(part) || 0;
  useEffect(() => {
    m.start(seq);
    return () => m.stop();
  }, []);
  const began = useRef(false);
  useEffect(() => {
    if (began.current && seq) m.around(seq).catch(fail);
    began.current = true;
  }, [seq]);
  const s = m.info.value;
  useEffect(() => {
    if (s) document.title = nameOf(s) + " – goclaw";
  }, [s]);
  if (!s) return html`<main class="session" id="main" tabindex="-1"><p role="status" class="pad">Opening…</p></main>`;
  const view = (to, label) => html`<a class="button" href=${`#/s/${encodeURIComponent(id)}${to}`} aria-current=${(part === "window") === (to !== "") ? "page" : null}>${label}</a>`;
  const spent = m.spent.value;
  const about = [s.source !== "goclaw" && s.source, s.mark, s.model, s.folder, s.usedTokens && short(s.usedTokens) + " tokens",
    spent?.lastTurn.cost && dollars(spent.lastTurn.cost) + " last turn", spent?.usage.cost && dollars(spent.usage.cost) + " in all"];
  return html`<main class="session" id="main" tabindex="-1">
    <header class="bar">
      <a class="backlink" href="#/">All</a>
      <div class="what"><${Title} m=${m} s=${s} /><p class="about">${about.filter(Boolean).join(" · ")}</p></div>
      <div class="tools">
        <nav aria-label="Views">${view("", "Conversation")} ${view("/window", "Window")}</nav>
        <button id="rename" onClick=${() => (m.naming.value = true)}>Rename</button>
        <button id="branches" onClick=${() => m.tree()}>Branches</button>
        <button id="compact" onClick=${() => m.planCompaction()}>Compact</button>
        <button onClick=${() => m.fork()}>Fork</button>
        <button onClick=${() => remove(s)}>Delete</button>
      </div>
    </header>
    <${Branches} m=${m} />
    <${Plan} m=${m} />
    ${part === "window" ? html`<${Picture} id=${id} version=${m.version.value} />` : html`<${Transcript} m=${m} />`}
  </main>`;
}
