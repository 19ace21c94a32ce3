// One session: what was said, what is being said, and what fills the window.
import { h } from "./vendor/preact.js";
import { useEffect, useLayoutEffect, useRef } from "./vendor/hooks.js";
import { signal, batch } from "./vendor/signals.js";
import htm from "./vendor/htm.js";
import { ask, get, at, query, trusted, short, dollars, clock } from "./api.js";
import { Picture } from "./picture.js";
import { changed, fail, go, nameOf, refresh, remove } from "./app.js";

const html = htm.bind(h);

const pageSize = 80;
const mostItems = 400; // in the page at a time

// model is the state of one session, and what changes it.
class Model {
  constructor(id) {
    this.id = id;
    this.info = signal(null);
    this.items = signal([]);
    this.first = 0; // the records that the items are from
    this.last = 0;
    this.end = signal(0);
    this.keepFrom = signal(0);
    this.saying = signal(""); // the answer that arrives
    this.thinking = signal("");
    this.running = signal(false);
    this.calls = signal([]); // that run now
    this.output = signal(""); // of a command that runs
    this.notices = signal([]);
    this.question = signal(null);
    this.queue = signal([]);
    this.draft = signal("");
    this.view = signal("chat");
    this.branches = signal(null);
    this.plan = signal(null);
    this.naming = signal(false);
    this.loading = false;
    this.version = signal(0); // grows when records come
  }

  async start(seq) {
    try {
      this.info.value = await get(at(this.id));
      await (seq ? this.around(seq) : this.latest());
      const q = await get(at(this.id, "/questions"));
      this.running.value = q.running;
      this.question.value = q.questions[0] || null;
      this.follow();
    } catch (err) {
      fail(err);
    }
  }

  stop() {
    this.source?.close();
  }

  show(page) {
    batch(() => {
      this.items.value = page.items;
      this.end.value = page.end;
      this.keepFrom.value = page.keepFrom;
    });
    this.first = page.first;
    this.last = page.last;
  }

  page(params) {
    return get(at(this.id, "/transcript" + query({ limit: pageSize, ...params })));
  }

  async latest() {
    this.show(await this.page({}));
  }

  async around(seq) {
    this.show(await this.page({ after: Math.max(0, seq - pageSize / 2) }));
  }

  async earlier() {
    if (this.loading || this.first <= 1) return false;
    this.loading = true;
    try {
      const page = await this.page({ before: this.first });
      this.first = page.first;
      let items = [...page.items, ...this.items.value];
      if (items.length > mostItems) {
        items = items.slice(0, mostItems);
        this.last = items[items.length - 1].seq;
      }
      this.items.value = items;
      return true;
    } catch (err) {
      fail(err);
    } finally {
      this.loading = false;
    }
    return false;
  }

  async later() {
    if (this.loading || this.last >= this.end.value) return false;
    this.loading = true;
    try {
      const page = await this.page({ after: this.last });
      this.last = page.last;
      let items = [...this.items.value, ...page.items];
      if (items.length > mostItems) {
        items = items.slice(-mostItems);
        this.first = items[0].seq;
      }
      batch(() => {
        this.items.value = items;
        this.end.value = page.end;
        this.keepFrom.value = page.keepFrom;
      });
      return true;
    } catch (err) {
      fail(err);
    } finally {
      this.loading = false;
    }
    return false;
  }

  follow() {
    const s = new EventSource(at(this.id, "/events" + query({ after: this.end.value })));
    this.source = s;
    const on = (type, f) => s.addEventListener(type, (e) => f(e.data ? JSON.parse(e.data) : {}));
    on("delta", (d) => {
      batch(() => {
        this.saying.value += d.text;
        this.running.value = true;
      });
    });
    on("thinking", (d) => {
      this.thinking.value += d.text;
      this.running.value = true;
    });
    on("recorded", (d) => this.recorded(d.record));
    on("tool", (d) => {
      if (d.state === "output") return void (this.output.value = d.tail);
      const others = this.calls.value.filter((c) => c.id !== d.id);
      this.calls.value = d.state === "running" ? [...others, d] : others;
      if (d.state !== "running") this.output.value = "";
    });
    on("question", (d) => (this.question.value = d));
    on("answered", (d) => {
      if (this.question.value?.id === d.id) this.question.value = null;
    });
    on("notice", (d) => (this.notices.value = [...this.notices.value.slice(-4), d.text]));
    on("done", () => this.over());
    s.addEventListener("error", (e) => {
      if (!e.data) return; // the connection: the browser comes back by itself
      const d = JSON.parse(e.data);
      this.notices.value = [...this.notices.value.slice(-4), d.message];
      this.over();
    });
  }

  async recorded(rec) {
    this.end.value = Math.max(this.end.value, rec.seq);
    clearTimeout(this.soon);
    this.soon = setTimeout(() => this.catchUp(), 30);
  }

  // catchUp shows records that came, if the end of the session is shown.
  async catchUp() {
    if (this.loading) {
      this.soon = setTimeout(() => this.catchUp(), 50);
      return;
    }
    const before = this.last;
    while (this.items.value.length === 0 || this.last >= before) {
      const was = this.last;
      if (!(await this.later()) || this.last === was) break;
    }
    const newest = this.items.value[this.items.value.length - 1];
    if (newest && newest.kind === "assistant") {
      batch(() => {
        this.saying.value = "";
        this.thinking.value = "";
      });
    }
    this.version.value++;
  }

  async over() {
    await this.catchUp();
    batch(() => {
      this.running.value = false;
      this.saying.value = "";
      this.thinking.value = "";
      this.calls.value = [];
      this.output.value = "";
      this.question.value = null;
    });
    try {
      this.info.value = await get(at(this.id));
      changed(this.info.value);
    } catch (err) {
      fail(err);
    }
    const [first, ...rest] = this.queue.value;
    if (first !== undefined) {
      this.queue.value = rest;
      this.say(first);
    }
  }

  async say(text) {
    if (this.running.value) {
      this.queue.value = [...this.queue.value, text];
      return;
    }
    this.running.value = true;
    this.notices.value = [];
    try {
      if (this.last < this.end.value) await this.latest();
      const resp = await fetch(at(this.id, "/turns"), {
        method: "POST",
        headers: { "Content-Type": "application/json", Prefer: "respond-async", "Idempotency-Key": crypto.randomUUID() },
        body: JSON.stringify(text === null ? { continue: true } : { text }),
      });
      const data = await resp.json();
      if (!resp.ok) throw new Error(data.detail || data.title);
      const where = decodeURIComponent((resp.headers.get("Content-Location") || "").split("/").pop());
      if (where && where !== this.id) {
        refresh();
        go("s", where); // it goes on in a session of goclaw's own
      }
    } catch (err) {
      this.running.value = false;
      if (text !== null) this.draft.value = text;
      fail(err);
    }
  }

  async act(f) {
    try {
      return await f();
    } catch (err) {
      fail(err);
      return undefined;
    }
  }

  halt() {
    return this.act(() => ask("DELETE", at(this.id, "/turns/current")));
  }

  answer(answer, because) {
    const q = this.question.value;
    this.question.value = null;
    return this.act(() => ask("POST", at(this.id, "/questions/" + q.id), because ? { answer, because } : { answer }));
  }

  rename(title) {
    return this.act(async () => {
      this.info.value = await ask("PATCH", at(this.id), { title });
      changed(this.info.value);
    });
  }

  fork(seq) {
    return this.act(async () => {
      const s = await ask("POST", at(this.id, "/fork"), { at: seq || 0 });
      await refresh();
      go("s", s.id);
    });
  }

  back(seq) {
    return this.act(async () => {
      const r = await ask("POST", at(this.id, "/branches"), { before: seq });
      this.draft.value = r.text;
      await this.moved();
    });
  }

  async tree() {
    this.branches.value = (await this.act(() => get(at(this.id, "/branches"))))?.branches ?? null;
  }

  goTo(id) {
    return this.act(async () => {
      await ask("POST", at(this.id, "/branches"), { to: id });
      await this.moved();
      await this.tree();
    });
  }

  async moved() {
    this.info.value = await get(at(this.id));
    await this.latest();
    this.version.value++;
  }

  async planCompaction() {
    this.plan.value = (await this.act(() => ask("POST", at(this.id, "/compact"), { dryRun: true }))) ?? null;
  }

  compact(body) {
    return this.act(async () => {
      this.plan.value = null;
      await ask("POST", at(this.id, "/compact"), body);
      await this.moved();
    });
  }
}

// Diff shows a diff with its lines coloured.
function Diff({ text }) {
  return html`<pre class="diff">${text.split("\n").map((line) => html`<span class=${line[0] === "+" ? "plus" : line[0] === "-" ? "minus" : line.startsWith("@@") ? "at" : ""}>${line + "\n"}</span>`)}</pre>`;
}

const isDiff = (name, text) => name === "edit_file" && /^@@ /m.test(text);

function Result({ r }) {
  const lines = r.text.split("\n");
  const head = lines.slice(0, 8).join("\n");
  const more = lines.length - 8;
  return html`<div class=${r.isError ? "result failed" : "result"}>
    ${isDiff(r.name, r.text) ? html`<${Diff} text=${r.text} />`
      : more > 1 || r.cut ? html`<details><summary><pre>${head}</pre><span class="more">… ${r.cut ? `${more} more lines, and ${r.cut} bytes not shown here` : `${more} more lines`}</span></summary><pre>${lines.slice(8).join("\n")}</pre></details>`
      : html`<pre>${r.text || "(no output)"}</pre>`}
  </div>`;
}

function Item({ it, m }) {
  const folded = it.seq < m.keepFrom.value;
  const classes = ["item", it.kind, it.dead && "dead", folded && "folded"].filter(Boolean).join(" ");
  const names = { user: "You", assistant: it.model || "Assistant", tool: "Result", compaction: "Summary of everything before", checkpoint: "Checkpoint", notice: "Notice to the model", undo: "Undone", model: "Model", title: "Title", shell: "Command", custom: "From a program", reset: "Started over", branch: "Back from a branch" };
  const body = html`
    ${it.thinking && html`<details class="thinking"><summary>Thinking</summary><div class="text">${it.thinking}</div></details>`}
    ${it.html && html`<div class="text" dangerouslySetInnerHTML=${trusted(it.html)}></div>`}
    ${it.text && html`<div class="text">${it.text}</div>`}
    ${it.cut > 0 && html`<p class="more">${it.cut} more bytes are not shown here.</p>`}
    ${it.images?.map((img) => html`<img alt="picture in the conversation" src=${`data:${img.mime};base64,${img.data}`} />`)}
    ${it.calls?.map((c) => html`<details class="call"><summary><code>${c.line}</code></summary><pre>${JSON.stringify(c.input, null, 2)}</pre></details>`)}
    ${it.results?.map((r) => html`<${Result} r=${r} />`)}
    ${it.error && html`<p class="error">${it.error}</p>`}`;
  const small = ["notice", "checkpoint", "model", "title", "undo"].includes(it.kind);
  return html`<article class=${classes} id=${"r" + it.seq} aria-label=${`${names[it.kind]}, record ${it.seq}`}>
    ${small
      ? html`<details><summary>${names[it.kind]}${it.percent ? ` (${it.percent} %)` : ""}${it.kind === "model" || it.kind === "title" ? ": " + it.text : ""}</summary>${body}</details>`
      : html`<header><span class="who">${names[it.kind]}</span> <time datetime=${it.time}>${clock(it.time)}</time> <a class="seq" href=${`#/s/${encodeURIComponent(m.id)}/${it.seq}`}>#${it.seq}</a>
          ${it.dead && html`<span class="tag">another branch</span>`}${folded && html`<span class="tag">not sent any more</span>`}
          ${it.kind === "user" && !it.dead && html`<button class="quiet" onClick=${() => m.back(it.seq)} title="Go back to before this message, and change it">Edit</button>`}
          ${(it.kind === "user" || it.kind === "assistant") && html`<button class="quiet" onClick=${() => m.fork(it.seq)}>Fork here</button>`}
        </header>
        ${it.kind === "compaction"
          ? html`<details class="summary"><summary>${it.tokens ? `${short(it.tokens)} tokens became ${short(it.after || 0)}. ` : ""}Show the summary</summary>${body}</details>
             <button class="quiet" onClick=${() => m.compact({ undo: true })}>Undo</button>`
          : body}`}
  </article>`;
}

function Question({ m }) {
  const q = m.question.value;
  const why = useRef();
  const first = useRef();
  const ready = useRef(0);
  useEffect(() => {
    if (!q) return;
    ready.current = Date.now() + 400; // what was typed before does not answer
    first.current?.focus();
  }, [q?.id]);
  if (!q) return null;
  const answer = (a) => () => Date.now() >= ready.current && m.answer(a, a === "no" ? why.current.value.trim() : "");
  return html`<section class="question" role="group" aria-label="Permission">
    <p>${q.url ? "Read this page?" : q.command ? html`Run this in ${q.folder}?` : html`Change <code>${q.path}</code>?`}</p>
    ${(q.url || q.command) && html`<pre>${q.url || q.command}</pre>`}
    ${q.diff && html`<${Diff} text=${q.diff} />`}
    <div class="answers">
      <button ref=${first} onClick=${answer("once")}>Once</button>
      ${!q.private && html`<button onClick=${answer("session")} title=${q.rule}>For this session</button><button onClick=${answer("always")} title=${q.rule}>Always here</button>`}
      <button onClick=${answer("no")}>No</button>
      <input ref=${why} placeholder="No, because …" aria-label="Why not" onKeyDown=${(e) => e.key === "Enter" && answer("no")()} />
    </div>
    ${!q.private && q.rule && html`<p class="hint">The middle answers allow <code>${q.rule}</code>.</p>`}
  </section>`;
}

function Composer({ m }) {
  const box = useRef();
  useEffect(() => {
    if (m.draft.value && box.current) {
      box.current.value = m.draft.value;
      m.draft.value = "";
      box.current.focus();
    }
  }, [m.draft.value]);
  const send = () => {
    const text = box.current.value.trim();
    if (!text) return;
    box.current.value = "";
    m.say(text);
  };
  const key = (e) => {
    if (e.key === "Enter" && !e.shiftKey && !e.isComposing) {
      e.preventDefault();
      send();
    }
    if (e.key === "Escape" && m.running.value) m.halt();
  };
  return html`<form class="composer" onSubmit=${(e) => { e.preventDefault(); send(); }}>
    ${m.queue.value.map((text, i) => html`<p class="queued">Next: ${text} <button type="button" class="quiet" onClick=${() => {
      m.queue.value = m.queue.value.filter((_, k) => k !== i);
      m.draft.value = text;
    }}>Take back</button></p>`)}
    <textarea id="say" ref=${box} rows="2" placeholder="Write a message" aria-label="Message" onKeyDown=${key}></textarea>
    <div class="buttons">
      ${m.running.value && html`<button type="button" class="stop" onClick=${() => m.halt()}>Stop</button>`}
      <button type="submit">${m.running.value ? "Queue" : "Send"}</button>
    </div>
  </form>`;
}

function Live({ m }) {
  return html`
    ${m.thinking.value && html`<article class="item assistant"><details class="thinking"><summary>Thinking…</summary><div class="text">${m.thinking.value}</div></details></article>`}
    ${m.saying.value && html`<article class="item assistant live"><div class="text plain">${m.saying.value}</div></article>`}
    ${m.calls.value.map((c) => html`<p class="running"><code>${c.name}</code> runs…</p>`)}
    ${m.output.value && html`<pre class="output">${m.output.value}</pre>`}
    ${m.notices.value.map((text) => html`<p class="notice-line">${text}</p>`)}
    <div role="status" class="hidden">${m.running.value ? "An answer is coming." : ""}</div>`;
}

function Transcript({ m, seq }) {
  const box = useRef();
  const bottom = useRef(true);
  const anchor = useRef(null);
  const scrolled = async () => {
    const el = box.current;
    if (!el) return;
    bottom.current = el.scrollHeight - el.scrollTop - el.clientHeight < 60;
    if (el.scrollTop < 600 && m.first > 1 && !m.loading) {
      anchor.current = { height: el.scrollHeight, top: el.scrollTop };
      await m.earlier();
    } else if (bottom.current && m.last < m.end.value) {
      await m.later();
    }
  };
  useLayoutEffect(() => {
    const el = box.current;
    if (!el) return;
    if (anchor.current) {
      el.scrollTop = anchor.current.top + el.scrollHeight - anchor.current.height;
      anchor.current = null;
    } else if (bottom.current && !seq) {
      el.scrollTop = el.scrollHeight;
    }
  });
  useEffect(() => {
    if (!seq) return undefined;
    bottom.current = false;
    const find = () => {
      const el = document.getElementById("r" + seq);
      if (!el) return;
      el.scrollIntoView({ block: "center" });
      el.classList.add("found");
    };
    const t = setTimeout(find, 100);
    return () => clearTimeout(t);
  }, [seq, m.items.value.length > 0]);
  const far = m.end.value > pageSize * 2;
  return html`<div class="chat">
    ${far && html`<label class="scrub">Record <input type="range" min="1" max=${m.end.value} value=${m.items.value[0]?.seq || 1} onChange=${(e) => { bottom.current = false; m.around(Number(e.target.value)); }} aria-label="Go to a record" /></label>`}
    <div class="scroll" ref=${box} onScroll=${scrolled} tabindex="0" role="log" aria-label="What was said" aria-live="off">
      ${m.items.value.map((it) => html`<${Item} key=${it.seq} it=${it} m=${m} />`)}
      <${Live} m=${m} />
    </div>
    <${Question} m=${m} />
    <${Composer} m=${m} />
  </div>`;
}

function Branches({ m }) {
  const list = m.branches.value;
  if (!list) return null;
  return html`<section class="panel" aria-label="Branches">
    <h3>Branches</h3>
    ${list.length < 2 && html`<p>There is one branch. “Edit” at a message begins another.</p>`}
    <ul>${list.map((b) => html`<li>${b.live ? html`<strong>here</strong>` : html`<button onClick=${() => m.goTo(b.id)}>Switch</button>`} ${b.turns} turns: ${b.text}</li>`)}</ul>
    <p class="hint">Files are not changed by going back.</p>
    <button onClick=${() => (m.branches.value = null)}>Close</button>
  </section>`;
}

function Plan({ m }) {
  const p = m.plan.value;
  if (!p) return null;
  return html`<section class="panel" aria-label="Compaction">
    <h3>Compact the past?</h3>
    <p>${p.compacted} records become a summary and ${p.kept} stay: ${short(p.tokensBefore)} tokens become about ${short(p.tokensAfter)}.
      ${p.cost ? ` It costs about ${dollars(p.cost)}.` : ""} Nothing is deleted, and it can be undone.</p>
    <button onClick=${() => m.compact({})}>Compact</button> <button onClick=${() => (m.plan.value = null)}>Cancel</button>
  </section>`;
}

export function Session({ id, seq }) {
  const model = useRef(null);
  if (!model.current) model.current = new Model(id);
  const m = model.current;
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
  if (!s) return html`<main class="session" id="main" tabindex="-1"><p role="status">Opening…</p></main>`;
  const rename = (e) => {
    e.preventDefault();
    const title = new FormData(e.target).get("title").trim();
    m.naming.value = false;
    if (title && title !== s.title) m.rename(title);
  };
  const tab = (name, label) => html`<button role="tab" aria-selected=${m.view.value === name} onClick=${() => (m.view.value = name)}>${label}</button>`;
  return html`<main class="session" id="main" tabindex="-1">
    <header class="bar">
      <a class="backlink" href="#/">All</a>
      <div class="what">${m.naming.value
          ? html`<form onSubmit=${rename}><input name="title" aria-label="Title" defaultValue=${s.title} ref=${(el) => el?.focus()} onKeyDown=${(e) => e.key === "Escape" && (m.naming.value = false)} /> <button>Save</button></form>`
          : html`<h2>${nameOf(s)}</h2>`}
        <p class="about">${[s.source !== "goclaw" && s.source, s.model, s.folder, s.usedTokens && short(s.usedTokens) + " tokens"].filter(Boolean).join(" · ")}</p></div>
      <div class="tools">
        <div role="tablist" aria-label="View">${tab("chat", "Conversation")}${tab("window", "Window")}</div>
        <button onClick=${() => (m.naming.value = true)}>Rename</button>
        <button onClick=${() => m.tree()}>Branches</button>
        <button onClick=${() => m.planCompaction()}>Compact</button>
        <button onClick=${() => m.fork()}>Fork</button>
        <button onClick=${() => remove(s)}>Delete</button>
      </div>
    </header>
    <${Branches} m=${m} />
    <${Plan} m=${m} />
    ${m.view.value === "chat" ? html`<${Transcript} m=${m} seq=${seq} />` : html`<${Picture} id=${id} version=${m.version.value} />`}
  </main>`;
}
