// The page: a list of sessions, and what is shown of one of them.
import { h, render } from "./vendor/preact.js";
import { useEffect, useRef } from "./vendor/hooks.js";
import { signal, computed } from "./vendor/signals.js";
import htm from "./vendor/htm.js";
import { ask, get, at, query, ago, short } from "./api.js";
import { Session } from "./session.js";
import { Usage } from "./usage.js";

const html = htm.bind(h);

// The address says what is shown: #/, #/s/ID, #/s/ID/SEQ, #/s/ID/window, #/usage, #/search/TEXT.
const route = signal(parse());
function parse() {
  try {
    const [kind = "", id = "", part = ""] = location.hash.replace(/^#\//, "").split("/").map(decodeURIComponent);
    return { kind, id, part };
  } catch {
    return { kind: "", id: "", part: "" };
  }
}
addEventListener("hashchange", () => {
  route.value = parse();
  // On a narrow page, what had the focus may be gone.
  setTimeout(() => {
    if (!document.activeElement?.checkVisibility?.() || document.activeElement === document.body) document.getElementById("main")?.focus();
  });
});
export const go = (...parts) => (location.hash = "#/" + parts.map(encodeURIComponent).join("/"));

const sessions = signal([]);
const next = signal("");
const loading = signal(false);
const filter = signal({ text: "", agent: "", channel: "", source: "", folder: "", trash: "", all: "" });
const problem = signal("");
const toast = signal(null); // {text, undo}
const help = signal(false);
const open = computed(() => (route.value.kind === "s" ? route.value.id : ""));

export function fail(err) {
  problem.value = err.message;
}

let asked = 0;
async function load(more) {
  if (more && (loading.value || !next.value)) return;
  const mine = ++asked;
  loading.value = true;
  try {
    const page = await get("/v1/sessions" + query({ ...filter.value, limit: 100, after: more ? next.value : "" }));
    if (mine !== asked) return;
    const fresh = (s) => !sessions.value.some((x) => x.id === s.id); // one that was written to comes again
    sessions.value = more ? [...sessions.value, ...page.sessions.filter(fresh)] : page.sessions;
    next.value = page.next;
  } catch (err) {
    fail(err);
  } finally {
    if (mine === asked) loading.value = false;
  }
}
export const refresh = () => load(false);

// changed shows what is new about a session in the list.
export function changed(s) {
  if (sessions.value.some((x) => x.id === s.id)) sessions.value = sessions.value.map((x) => (x.id === s.id ? s : x));
  else refresh();
}

async function begin() {
  try {
    const s = await ask("POST", "/v1/sessions", {});
    await refresh();
    go("s", s.id);
  } catch (err) {
    fail(err);
  }
}

export async function remove(s) {
  try {
    if (open.value === s.id) go(""); // nothing is asked about it any more
    await ask("DELETE", at(s.id));
    sessions.value = sessions.value.filter((x) => x.id !== s.id);
    toast.value = {
      text: `“${nameOf(s)}” is in the trash.`,
      undo: async () => {
        toast.value = null;
        try {
          await ask("POST", at(s.id, "/restore"));
          await refresh();
          go("s", s.id);
        } catch (err) {
          fail(err);
        }
      },
    };
    setTimeout(() => document.querySelector(".toast button")?.focus());
  } catch (err) {
    fail(err);
  }
}

export const nameOf = (s) => {
  const name = (s.title || s.key).replace(/\s+/g, " ");
  return name.length > 200 ? name.slice(0, 200) + "…" : name;
};

const programs = ["goclaw", "openclaw", "pi", "claude-code", "codex", "opencode", "gemini-cli", "crush", "claw0"];

function Filters() {
  const f = filter.value;
  const set = (name) => (e) => {
    filter.value = { ...f, [name]: e.target.type === "checkbox" ? (e.target.checked ? "true" : "") : e.target.value.trim() };
    refresh();
  };
  const on = Object.entries(f).filter(([name, v]) => v && name !== "text").length;
  // What is in the list is suggested.
  const field = (name, label, of) => html`<label>${label} <input value=${f[name]} onChange=${set(name)} list=${"all-" + name} /></label>
    <datalist id=${"all-" + name}>${[...new Set(sessions.value.slice(0, 500).map(of).filter(Boolean))].slice(0, 50).map((v) => html`<option value=${v}></option>`)}</datalist>`;
  const parts = (s) => (s.key.startsWith("agent:") ? s.key.slice(6) : s.key).split(":");
  return html`<details class="filters">
    <summary>Filters${on ? ` (${on})` : ""}</summary>
    ${field("folder", "Folder", (s) => s.folder)} ${field("agent", "Agent", (s) => parts(s)[0])} ${field("channel", "Channel", (s) => parts(s)[1])}
    <label>From <select value=${f.source} onChange=${set("source")}>
      <option value="">anywhere</option>
      ${programs.map((p) => html`<option value=${p}>${p}</option>`)}
    </select></label>
    <label><input type="checkbox" name="all" checked=${f.all === "true"} onChange=${set("all")} /> Subagents’ sessions, too</label>
    <label><input type="checkbox" name="trash" checked=${f.trash === "true"} onChange=${set("trash")} /> In the trash</label>
  </details>`;
}

async function restore(s) {
  try {
    await ask("POST", at(s.id, "/restore"));
    await refresh();
    toast.value = { text: `“${nameOf(s)}” is back.` };
  } catch (err) {
    fail(err);
  }
}

const rowHeight = 56; // as in style.css

function Row({ s, here, place }) {
  const about = [s.source !== "goclaw" && s.source, s.mark, s.folder.split("/").pop(), `${s.turns} ${s.turns === 1 ? "turn" : "turns"}`, s.usedTokens && short(s.usedTokens), ago(s.updatedAt)];
  const what = html`<span class="name">${nameOf(s)}</span><span class="about">${about.filter(Boolean).join(" · ")}</span>`;
  return html`<li class=${here ? "row here" : "row"} aria-setsize=${next.value ? -1 : sessions.value.length} aria-posinset=${place + 1}>
    ${s.trashedAt ? html`<div>${what}</div><button onClick=${() => restore(s)} aria-label=${"Restore " + nameOf(s)}>Restore</button>`
      : html`<a href=${"#/s/" + encodeURIComponent(s.id)} aria-current=${here ? "page" : null}>${what}</a>`}
  </li>`;
}

// Rows shows those sessions that are in view, however many there are.
function Rows({ box }) {
  const from = useRef(signal(0)).current;
  const list = useRef();
  const all = sessions.value;
  useEffect(() => {
    const el = box.current;
    const scrolled = () => {
      const top = Math.max(0, el.scrollTop - list.current.offsetTop);
      from.value = Math.max(0, Math.floor(top / rowHeight) - 10);
      if (el.scrollTop + el.clientHeight > el.scrollHeight - 20 * rowHeight) load(true);
    };
    scrolled();
    el.addEventListener("scroll", scrolled);
    return () => el.removeEventListener("scroll", scrolled);
  }, [all]);
  useEffect(() => {
    const i = sessions.value.findIndex((s) => s.id === open.value);
    const el = box.current;
    const top = list.current.offsetTop + i * rowHeight;
    if (i >= 0 && (top < el.scrollTop || top + rowHeight > el.scrollTop + el.clientHeight)) el.scrollTop = top - el.clientHeight / 2;
  }, [open.value]);
  const some = all.slice(from.value, from.value + Math.ceil(innerHeight / rowHeight) + 20);
  return html`<ul ref=${list} style=${{ height: all.length * rowHeight + "px", paddingTop: Math.min(from.value, all.length) * rowHeight + "px" }}>
    ${some.map((s, i) => html`<${Row} key=${s.id} s=${s} here=${open.value === s.id} place=${from.value + i} />`)}</ul>`;
}

function List() {
  const box = useRef();
  const typed = useRef(0);
  const find = (e) => {
    clearTimeout(typed.current);
    const text = e.target.value;
    typed.current = setTimeout(() => {
      filter.value = { ...filter.value, text };
      refresh();
    }, 150);
  };
  const search = (e) => {
    e.preventDefault();
    const text = new FormData(e.target).get("q").trim();
    if (text) go("search", text);
  };
  useEffect(() => {
    const back = () => document.visibilityState === "visible" && box.current.scrollTop < rowHeight && refresh();
    document.addEventListener("visibilitychange", back);
    return () => document.removeEventListener("visibilitychange", back);
  }, []);
  return html`<nav class="list" aria-label="Sessions" ref=${box}>
    <div class="top">
      <h1><a href="#/">goclaw</a></h1>
      <button class="new" onClick=${begin}>New</button>
      <a class="button" href="#/usage">Usage</a>
      <button aria-label="Keyboard shortcuts" title="Keyboard shortcuts" onClick=${() => (help.value = true)}>?</button>
    </div>
    <form role="search" onSubmit=${search}><input type="search" name="q" id="search" placeholder="Search all messages" aria-label="Search all messages" /></form>
    <input class="narrow" placeholder="Filter the list" aria-label="Filter the list" onInput=${find} />
    <${Filters} />
    <${Rows} box=${box} />
    ${!sessions.value.length && !loading.value && html`<p class="none" role="status">No sessions here.</p>`}
  </nav>`;
}

function Search({ text }) {
  const found = useRef(signal(null)).current;
  useEffect(() => {
    found.value = null;
    get("/v1/search" + query({ q: text, limit: 30 })).then((r) => (found.value = r), fail);
  }, [text]);
  const r = found.value;
  return html`<main class="search" id="main" tabindex="-1">
    <a class="backlink" href="#/">All</a>
    <h2>“${text}”</h2>
    ${!r && html`<p role="status">Searching…</p>`}
    ${r && !r.hits.length && html`<p role="status">Nothing found.</p>`}
    ${r && r.near && html`<p class="hint">Nothing matches exactly; these are the closest.</p>`}
    <ol class="hits">${r && r.hits.map((hit) => html`<li>
      ${hit.session
        ? html`<a href=${`#/s/${encodeURIComponent(hit.session)}/${hit.seq}`}>${hit.title || hit.key}</a>`
        : html`<strong>${hit.file}:${hit.line}</strong>`}
      <span class="about">${[hit.role, hit.source, ago(hit.time)].filter(Boolean).join(" · ")}</span>
      <p>${hit.snippet}</p>
    </li>`)}</ol>
  </main>`;
}

const keys = [
  ["/", "search"], ["n", "new session"], ["j, k", "next, previous session"], ["m", "write a message"],
  ["Enter", "send; during an answer: queue"], ["Shift+Enter", "new line"], ["Esc", "stop the answer, leave a field"], ["?", "this list"],
];

function Help() {
  const box = useRef();
  useEffect(() => {
    if (help.value) box.current.showModal();
  }, [help.value]);
  if (!help.value) return null;
  return html`<dialog ref=${box} onClose=${() => (help.value = false)} aria-label="Keyboard shortcuts">
    <h2>Keyboard shortcuts</h2>
    <dl>${keys.map(([k, what]) => html`<dt><kbd>${k}</kbd></dt><dd>${what}</dd>`)}</dl>
    <button onClick=${() => box.current.close()}>Close</button>
  </dialog>`;
}

addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || help.value) return;
  const typing = document.activeElement?.matches("input:not([type=checkbox], [type=range]), textarea, select");
  if (typing) {
    if (e.key === "Escape") document.activeElement.blur();
    return;
  }
  const move = (by) => {
    const i = sessions.value.findIndex((s) => s.id === open.value);
    const s = sessions.value[Math.max(0, Math.min(sessions.value.length - 1, i + by))];
    if (s) go("s", s.id);
  };
  const act = {
    "/": () => document.getElementById("search").focus(),
    n: begin,
    j: () => move(1),
    k: () => move(-1),
    m: () => document.getElementById("say")?.focus(),
    "?": () => (help.value = true),
  }[e.key];
  if (act) {
    e.preventDefault();
    act();
  }
});

function App() {
  const r = route.value;
  useEffect(() => {
    refresh();
  }, []);
  return html`<div class=${r.kind ? "page inside" : "page"}>
    <a class="skip" href="#main" onClick=${(e) => { e.preventDefault(); document.getElementById("main")?.focus(); }}>To the content</a>
    <${List} />
    ${r.kind === "s" ? html`<${Session} key=${r.id} id=${r.id} part=${r.part} />`
      : r.kind === "usage" ? html`<${Usage} />`
      : r.kind === "search" ? html`<${Search} key=${r.id} text=${r.id} />`
      : html`<main class="empty" id="main" tabindex="-1"><p>Choose a session, or start a new one.</p></main>`}
    ${problem.value && html`<div class="toast bad" role="alert">${problem.value} <button onClick=${() => (problem.value = "")}>Close</button></div>`}
    ${toast.value && html`<div class="toast" role="status">${toast.value.text} ${toast.value.undo && html`<button onClick=${toast.value.undo}>Undo</button>`} <button onClick=${() => (toast.value = null)}>Close</button></div>`}
    <${Help} />
  </div>`;
}

render(html`<${App} />`, document.getElementById("app"));
